import { expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { ConfigError, commandGroup, defineCommand, parseCommand } from "../../src/index.ts";

const calls: unknown[] = [];
const serve = defineCommand({
  summary: "Serve a directory as a bucket",
  schema: z.strictObject({
    directory: z.string().meta({ description: "Where objects lie.", positional: true, placeholder: "DIR" }),
    listen: z.string().default("127.0.0.1:0").meta({ description: "Where to listen.", env: "TOOL_LISTEN" }),
  }),
  async run(config, context: { log: string[] }) {
    expectTypeOf(config.directory).toEqualTypeOf<string>();
    calls.push(config);
    context.log.push("ran");
    return 7;
  },
});
const root = commandGroup("The toy's tool", {
  bucket: commandGroup("Buckets", { serve }),
});

function parse(argv: string[], env: Record<string, string> = {}) {
  return parseCommand(root, { name: "tool", version: "1.0.0", argv, env });
}

it("words lead to a command, which gets its own configuration and answers with its code", async () => {
  const parsed = parse(["bucket", "serve", "here", "--listen", "x:1"]);
  if (parsed.kind !== "run") throw new TypeError(parsed.kind);
  expect(parsed.name).toBe("tool bucket serve");
  const context = { log: [] };
  expect(await parsed.run(context)).toBe(7);
  expect(calls).toEqual([{ directory: "here", listen: "x:1" }]);
  expect(context.log).toEqual(["ran"]);
});

it.each([
  ["no word", []],
  ["--help", ["--help"]],
  ["a group alone", ["bucket"]],
])("%s shows the commands below", (_, argv) => {
  const parsed = parse(argv);
  expect(parsed).toMatchObject({ kind: "help" });
  expect(parsed.kind === "help" && parsed.text).toMatch(
    /Commands:\n.*serve {2}Serve a directory as a bucket/,
  );
});

it("a command's help names the words that lead to it and its arguments", () => {
  const parsed = parse(["bucket", "serve", "--help"]);
  expect(parsed.kind === "help" && parsed.text).toMatch(
    /^Usage: tool bucket serve DIR \[options\]\n\nServe a directory as a bucket\.\n\nArguments:\n {2}DIR {2}required/,
  );
});

it("--version is the program's at every depth", () => {
  for (const argv of [["--version"], ["bucket", "-V"]])
    expect(parse(argv)).toEqual({ kind: "version", text: "tool 1.0.0\n" });
});

it.each([
  [
    "an unknown command, with the one that was meant",
    ["buckt"],
    /tool: buckt: unknown command; did you mean bucket\?/,
  ],
  ["a name every object has", ["constructor"], /constructor: unknown command/],
  [
    "an unknown command below",
    ["bucket", "sreve"],
    /tool bucket: sreve: unknown command; did you mean serve\?/,
  ],
  ["a flag before the command", ["--listen=x", "bucket"], /--listen=x: a command comes first/],
  ["a missing argument", ["bucket", "serve"], /tool bucket serve: DIR: is required/],
  ["an argument too many", ["bucket", "serve", "a", "b"], /b: no argument is expected here/],
])("refuses %s", (_, argv, message) => {
  expect(() => parse(argv)).toThrow(ConfigError);
  expect(() => parse(argv)).toThrow(message);
});
