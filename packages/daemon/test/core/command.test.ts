import { beforeEach, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { ConfigError, commandGroup, defineCommand, listedCommand, parseCommand } from "../../src/index.ts";

const calls: unknown[] = [];
const serve = defineCommand({
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
let loadCount = 0;
const root = commandGroup("The toy's tool", {
  bucket: commandGroup("Buckets", {
    serve: listedCommand("Serve a directory as a bucket", async () => {
      loadCount += 1;
      return serve;
    }),
  }),
});
beforeEach(() => {
  loadCount = 0;
});

function parse(argv: string[], env: Record<string, string> = {}) {
  return parseCommand(root, { name: "tool", version: "1.0.0", argv, env });
}

it("words lead to a command, which gets its own configuration and answers with its code", async () => {
  const parsed = await parse(["bucket", "serve", "here", "--listen", "x:1"]);
  if (parsed.kind !== "run") throw new TypeError(parsed.kind);
  expect(parsed.name).toBe("tool bucket serve");
  const context = { log: [] };
  expect(await parsed.run(context)).toBe(7);
  expect(calls).toEqual([{ directory: "here", listen: "x:1" }]);
  expect(context.log).toEqual(["ran"]);
});

const theirList = /Commands:\n.*serve {2}Serve a directory as a bucket/;

it.each([
  ["--help", ["--help"]],
  ["-h of a group", ["bucket", "-h"]],
])("%s shows the commands below, and loads none", async (_, argv) => {
  const parsed = await parse(argv);
  expect(parsed).toMatchObject({ kind: "help" });
  expect(parsed.kind === "help" && parsed.text).toMatch(theirList);
  expect(loadCount).toBe(0);
});

it.each([
  ["no word", [], "tool: COMMAND: is required"],
  ["a group alone", ["bucket"], "tool bucket: COMMAND: is required"],
])(
  "%s is no success: the commands below are the error's help, and none is loaded",
  async (_, argv, message) => {
    await expect(parse(argv)).rejects.toMatchObject({
      ...{ code: "CELLKIT_DAEMON_CONFIG", exitCode: 2, message },
      help: expect.stringMatching(theirList),
    });
    expect(loadCount).toBe(0);
  },
);

it("a command's help names the words that lead to it and its arguments", async () => {
  const parsed = await parse(["bucket", "serve", "--help"]);
  expect(parsed.kind === "help" && parsed.text).toMatch(
    /^Usage: tool bucket serve DIR \[options\]\n\nServe a directory as a bucket\.\n\nArguments:\n {2}DIR {2}required/,
  );
});

it("--version is the program's at every depth", async () => {
  for (const argv of [["--version"], ["bucket", "-V"]])
    expect(await parse(argv)).toEqual({ kind: "version", text: "tool 1.0.0\n" });
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
])("refuses %s", async (_, argv, message) => {
  await expect(parse(argv)).rejects.toThrow(ConfigError);
  await expect(parse(argv)).rejects.toThrow(message);
});

it("a command's own description stands before its summary, and what its loading throws is thrown", async () => {
  const described = defineCommand({
    description: "Of itself.",
    schema: z.strictObject({}),
    run: async () => 0,
  });
  const failure = new TypeError("no such module");
  const commands = commandGroup("The toy's tool", {
    described: listedCommand("In the list", () => described),
    lost: listedCommand("In the list", () => Promise.reject(failure)),
  });
  const identity = { name: "tool", version: "1.0.0", env: {} };
  const parsed = await parseCommand(commands, { ...identity, argv: ["described", "--help"] });
  expect(parsed.kind === "help" && parsed.text).toMatch(/\n\nOf itself\.\n\n/);
  await expect(parseCommand(commands, { ...identity, argv: ["lost"] })).rejects.toBe(failure);
});
