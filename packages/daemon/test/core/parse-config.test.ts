import { expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { ConfigError, type ParseOptions, parseConfig } from "../../src/index.ts";
import { schema } from "../support/schema.ts";

const identity = {
  name: "toy",
  version: "1.2.3",
  description: "A toy.",
  envPrefix: "TOY_",
} satisfies Partial<ParseOptions>;

function parse(argv: string[], env: Record<string, string> = {}, more: Partial<ParseOptions> = {}) {
  return parseConfig(schema, { ...identity, ...more, argv, env });
}

function config(argv: string[], env: Record<string, string> = {}) {
  const parsed = parse(["--bucket=s3://b", ...argv], env);
  if (parsed.kind !== "config") throw new TypeError(`got ${parsed.kind}`);
  return parsed;
}

function problems(
  argv: string[],
  env: Record<string, string> = {},
  more: Partial<ParseOptions> = {},
): string[] {
  try {
    parse(argv, env, more);
  } catch (error) {
    if (error instanceof ConfigError) {
      return error.problems.map(
        ({ where, value, message }) => `${where}: ${message}${value === undefined ? "" : ` <${value}>`}`,
      );
    }
    throw error;
  }
  return [];
}

it.each([
  ["a flag and its value are two words", ["--region", "eu"], {}, { region: "eu" }],
  ["or one with an equals sign", ["--region=eu"], {}, { region: "eu" }],
  ["a value may hold an equals sign", ["--region=a=b"], {}, { region: "a=b" }],
  ["a number is given in digits", ["--shutdown-drain-ms", "100"], {}, { shutdownDrainMs: 100 }],
  ["a negative number is a value, not a flag", ["--weight", "-1.5"], {}, { weight: -1.5 }],
  ["a bare boolean flag is true", ["--reload"], {}, { reload: true }],
  ["its no- form is false", ["--no-reload"], { TOY_RELOAD: "1" }, { reload: false }],
  ["a boolean flag takes 1 after an equals sign", ["--reload=1"], {}, { reload: true }],
  ["a boolean flag takes 0 after an equals sign", ["--reload=0"], {}, { reload: false }],
  ["a boolean variable is 1", [], { TOY_RELOAD: "1" }, { reload: true }],
  ["or 0", [], { TOY_RELOAD: "0" }, { reload: false }],
  ["a list flag is given several times", ["--peer", "a", "--peer=b"], {}, { peer: ["a", "b"] }],
  ["a list variable is separated by commas", [], { TOY_PEERS: "a, b,,c" }, { peer: ["a", "b", "c"] }],
  [
    "a transform gives what the schema makes",
    ["--advertise", "h:1"],
    {},
    { advertise: { host: "h", port: 1 } },
  ],
  [
    "the first variable that is set counts",
    [],
    { AWS_REGION: "a", AWS_DEFAULT_REGION: "b" },
    { region: "a" },
  ],
  ["the second where the first is empty", [], { AWS_REGION: "", AWS_DEFAULT_REGION: "b" }, { region: "b" }],
  ["empty text is unset where meta says so", [], { AWS_REGION: "" }, { region: "us-east-1" }],
  ["also by flag", ["--region="], { AWS_REGION: "eu" }, { region: "eu" }],
  [
    "a flag wins over its variable",
    ["--shutdown-drain-ms=1"],
    { TOY_SHUTDOWN_DRAIN_MS: "2" },
    { shutdownDrainMs: 1 },
  ],
  ["a variable wins over the default", [], { TOY_SHUTDOWN_DRAIN_MS: "2" }, { shutdownDrainMs: 2 }],
  [
    "the default is taken when nothing is given",
    [],
    {},
    { shutdownDrainMs: 25_000, mode: "refuse", peer: [] },
  ],
])("%s", (_, argv, env, expected) => {
  expect(config(argv, env).config).toMatchObject(expected);
});

it("the config has the schema's own type", () => {
  const parsed = parse(["--bucket=s3://b"]);
  if (parsed.kind !== "config") throw new TypeError("no config");
  expectTypeOf(parsed.config.shutdownDrainMs).toEqualTypeOf<number>();
  expectTypeOf(parsed.config.advertise).toEqualTypeOf<{ host: string; port: number } | undefined>();
});

it("says where each value came from", () => {
  const { from } = config(["--region=eu"], { TOY_RELOAD: "1" });
  expect(from).toMatchObject({
    bucket: "--bucket",
    region: "--region",
    reload: "TOY_RELOAD",
    mode: "default",
  });
});

const bucket = ["--bucket=s3://b"];
it.each([
  [
    "an unknown flag, with the one that was meant",
    ["--buckett=x", ...bucket],
    {},
    [/^--buckett: unknown flag; did you mean --bucket\?$/],
  ],
  ["an unknown flag far from any", ["--zzzzzzzz", ...bucket], {}, [/^--zzzzzzzz: unknown flag$/]],
  ["an unknown short flag", ["-x", ...bucket], {}, [/^-x: unknown flag/]],
  [
    "a flag without its value at the end",
    [...bucket, "--region"],
    {},
    [/^--region: needs a value: --region REGION/],
  ],
  ["a flag followed by a flag", ["--region", ...bucket], {}, [/^--region: needs a value/]],
  ["a flag given twice", [...bucket, ...bucket], {}, [/^--bucket: given more than once/]],
  ["yes and no at once", [...bucket, "--reload", "--no-reload"], {}, [/^--no-reload: given more than once/]],
  [
    "a value for a no- flag",
    [...bucket, "--no-reload=1"],
    {},
    [/^--no-reload: takes no value; write --reload=0 or =1/],
  ],
  ["an argument nobody asked for", [...bucket, "here"], {}, [/^here: no argument is expected here$/]],
  [
    "everything after -- is an argument",
    [...bucket, "--", "--reload"],
    {},
    [/^--reload: no argument is expected here$/],
  ],
  [
    "words for a number",
    [...bucket, "--shutdown-drain-ms=ten"],
    {},
    [/^--shutdown-drain-ms: must be a number in digits <ten>$/],
  ],
  [
    "a number in another notation",
    [...bucket, "--shutdown-drain-ms=0x10"],
    {},
    [/must be a number in digits <0x10>/],
  ],
  [
    "nothing for a number",
    bucket,
    { TOY_SHUTDOWN_DRAIN_MS: "" },
    [/^TOY_SHUTDOWN_DRAIN_MS: must be a number in digits <>$/],
  ],
  [
    "a boolean variable that is neither 0 nor 1",
    bucket,
    { TOY_RELOAD: "true" },
    [/^TOY_RELOAD: must be 0 or 1 <true>$/],
  ],
  [
    "a boolean flag that is neither 0 nor 1",
    [...bucket, "--reload=yes"],
    {},
    [/^--reload: must be 0 or 1 <yes>$/],
  ],
  [
    "what the schema refuses, under the flag's name",
    ["--bucket=gs://x"],
    {},
    [/^--bucket: must be s3:\/\/BUCKET\[\/PREFIX\] <gs:\/\/x>$/],
  ],
  [
    "what the schema refuses, under the variable's name",
    [],
    { TOY_BUCKET: "x" },
    [/^TOY_BUCKET: must be s3:/],
  ],
  [
    "a word outside an enum",
    [...bucket, "--mode=x"],
    {},
    [/^--mode: invalid option: expected one of "refuse"\|"serve" <x>$/],
  ],
  [
    "a number out of range",
    [...bucket, "--shutdown-drain-ms=0"],
    {},
    [/^--shutdown-drain-ms: must be 1 to 600000 <0>$/],
  ],
  [
    "a required option that is missing",
    [],
    {},
    [/^--bucket: is required \(or set TOY_BUCKET\): Where cells live\.$/],
  ],
  ["a required option that is empty", ["--bucket="], { TOY_BUCKET: "" }, [/^--bucket: is required/]],
])("refuses %s", (_, argv, env, expected) => {
  const found = problems(argv, env);
  expect(found).toHaveLength(expected.length);
  for (const [index, pattern] of expected.entries()) expect(found[index]).toMatch(pattern);
});

it("lists all problems at once, each under the name the user wrote", () => {
  const found = problems(["--mod=serve", "extra", "--shutdown-drain-ms=x", "--reload=2"], {
    TOY_BUCKET: "nope",
  });
  expect(found.map((line) => line.split(":")[0])).toEqual([
    "--mod",
    "extra",
    "--shutdown-drain-ms",
    "--reload",
    "TOY_BUCKET",
  ]);
});

it("names the problems in one message that ends with what to do", () => {
  expect(() => parse(["--bucket=x", "--mode=y"])).toThrow(
    /^toy: 2 problems:\n {2}--bucket "x": .*\n {2}--mode "y": .*\nRun `toy --help` for all options\.$/,
  );
});

it("does not repeat a value that the schema's own message names", () => {
  const port = z.strictObject({
    port: z
      .string()
      .refine((text) => text === "1", { error: ({ input }) => `"${String(input)}" is no port` })
      .meta({ description: "A port." }),
  });
  expect(() => parseConfig(port, { ...identity, argv: ["--port=x"], env: {} })).toThrow(
    /^toy: --port: "x" is no port\n/,
  );
  expect(() => parse([...bucket, "--mode=x"])).toThrow(/^toy: --mode "x": invalid option/);
});

it("cuts a long value in a message", () => {
  const [line = ""] = problems([`--bucket=${"x".repeat(10_000)}`]);
  expect(line.length).toBeLessThan(200);
});

it("a secret's value stands in no message and no printed configuration", () => {
  const [line = ""] = problems(bucket, { TOY_SECRET: "abc" });
  expect(line).toMatch(/^TOY_SECRET: does not fit: too_small$/);
  const parsed = parse([...bucket, "--print-config"], { TOY_SECRET: "swordfish" });
  expect(parsed.kind).toBe("print-config");
  expect(JSON.stringify(parsed)).not.toContain("swordfish");
  expect(JSON.parse(parsed.kind === "print-config" ? parsed.text : "")).toMatchObject({
    bucket: { value: "s3://b", from: "--bucket" },
    region: { value: "us-east-1", from: "default" },
    secretKey: { value: "(not shown)", from: "TOY_SECRET" },
    advertise: { value: null, from: "default" },
  });
});

it("a secret has no flag, so that a list of processes cannot show it", () => {
  expect(problems([...bucket, "--secret-key=abcd"])[0]).toMatch(/^--secret-key: unknown flag/);
});

it("--print-config of a configuration with problems shows the problems", () => {
  expect(problems(["--print-config"])).toHaveLength(1);
});

it("an unknown variable with the prefix is a warning, others are not looked at", () => {
  const { warnings } = config([], { TOY_BUKET: "x", TOY_SERVICE_HOST: "10.0.0.1", OTHER: "y" });
  expect(warnings).toEqual([
    "TOY_BUKET is not a variable of toy and has no effect; did you mean TOY_BUCKET?",
    "TOY_SERVICE_HOST is not a variable of toy and has no effect",
  ]);
});

it("a known variable without effect is a warning, one that would be unsafe to ignore is refused", () => {
  const otherVariables = {
    TOY_OLD: { effect: "none", reason: "the engine decides" },
    "TOY_VAR_*": { effect: "refused", reason: "put it into vars" },
  } as const;
  const parsed = parse(bucket, { TOY_OLD: "1" }, { otherVariables });
  expect(parsed).toMatchObject({ warnings: ["TOY_OLD has no effect: the engine decides"] });
  expect(problems(bucket, { TOY_VAR_A: "1" }, { otherVariables })).toEqual([
    "TOY_VAR_A: is refused: put it into vars",
  ]);
});

it.each([
  ["--help", "help"],
  ["-h", "help"],
  ["--version", "version"],
  ["-V", "version"],
])("%s is answered even when the rest is wrong", (flag, kind) => {
  expect(parse(["--nonsense", flag]).kind).toBe(kind);
});

it("--version is the name and the version", () => {
  expect(parse(["--version"])).toEqual({ kind: "version", text: "toy 1.2.3\n" });
});

it("nothing at all, where something is needed, is told with the help where the program says so", () => {
  const thrown = (env: Record<string, string>, options = {}): ConfigError => {
    try {
      parse([], env, options);
    } catch (error) {
      if (error instanceof ConfigError) return error;
      throw error;
    }
    throw new TypeError("it was taken");
  };
  const bare = thrown({ PATH: "/bin" }, { helpWhenBare: true });
  expect(bare.help).toMatch(/^Usage: toy \[options\]\n[\s\S]*Exit codes:[\s\S]*\n$/);
  expect(bare).toMatchObject({ exitCode: 2, problems: thrown({}).problems });
  expect(bare.message).not.toContain("--help");
  expect(thrown({ TOY_REGION: "x" }, { helpWhenBare: true }).help).toBeUndefined();
  expect(thrown({}).help).toBeUndefined();
});

it("nothing at all, where nothing is needed, asks for help where the program says so", () => {
  const schema = z.strictObject({ n: z.int().default(1).meta({ description: "A number." }) });
  const kindOf = (helpWhenBare: boolean) =>
    parseConfig(schema, { ...identity, argv: [], env: {}, helpWhenBare }).kind;
  expect(kindOf(true)).toBe("help");
  expect(kindOf(false)).toBe("config");
});

it("a message that begins with an abbreviation keeps it", () => {
  const schema = z
    .strictObject({ cert: z.string().optional().meta({ description: "PEM." }) })
    .refine(() => false, { path: ["cert"], error: "TLS needs a key" });
  const run = (argv: string[]) => () => parseConfig(schema, { ...identity, argv, env: {} });
  expect(run([])).toThrow("--cert: TLS needs a key");
  expect(run(["--cert", "x"])).toThrow('--cert "x": TLS needs a key');
});

it("a rule between options names the option it puts the blame on", () => {
  const pair = z
    .strictObject({
      from: z.int().default(1).meta({ description: "Low end." }),
      to: z.int().default(2).meta({ description: "High end." }),
    })
    .refine(({ from, to }) => from < to, { path: ["to"], message: "must be more than --from" });
  const run = (argv: string[]) => () => parseConfig(pair, { ...identity, argv, env: {} });
  expect(run(["--to", "0"])).toThrow(/--to "0": must be more than --from/);
  expect(run(["--from", "7"])).toThrow(/--to: must be more than --from/);
});

it("a rule about a boolean flag is told without a value, as it was given none", () => {
  const schema = z
    .strictObject({ receive: z.boolean().default(false).meta({ description: "Receive." }) })
    .refine(({ receive }) => !receive, { path: ["receive"], message: "is not served yet" });
  for (const argv of [["--receive"], ["--receive=1"]]) {
    expect(() => parseConfig(schema, { ...identity, argv, env: {} })).toThrow(/--receive: is not served yet/);
  }
});

it("arguments by position fill the schema's keys in order, a list takes the rest", () => {
  const files = z.strictObject({
    target: z.string().meta({ description: "Where to.", positional: true }),
    files: z
      .array(z.string())
      .default([])
      .meta({ description: "What.", positional: true, placeholder: "FILE" }),
    force: z.boolean().default(false).meta({ description: "Overwrite." }),
  });
  const run = (argv: string[]) => parseConfig(files, { ...identity, argv, env: {} });
  expect(run(["t", "--force", "a", "--", "--b"])).toMatchObject({
    config: { target: "t", files: ["a", "--b"], force: true },
  });
  expect(() => run([])).toThrow(/TARGET: is required: Where to\./);
  expect(() => run(["t", "--target=x"])).toThrow(/--target: unknown flag/);
});

it.each([
  ["nodes", "99", "must be 1 to 16"],
  ["nodes", "0", "must be 1 to 16"],
  ["nodes", "1.5", "must be a whole number, 1 to 16"],
  ["least", "0", "must be at least 1"],
  ["most", "8", "must be at most 7"],
  ["whole", "0.5", "must be a whole number"],
  ["own", "-1", "an own sentence"],
])("what a number may be is said in words: --%s %s", (key, text, message) => {
  const number = (field: z.ZodNumber) => field.optional().meta({ description: "A number." });
  const numbers = z.strictObject({
    nodes: number(z.number().int().min(1).max(16)),
    least: number(z.number().int().min(1)),
    most: number(z.number().max(7)),
    whole: number(z.number().int()),
    own: number(z.number().min(0, "An own sentence")),
  });
  expect(() => parseConfig(numbers, { ...identity, argv: [`--${key}=${text}`], env: {} })).toThrow(
    `--${key} ${JSON.stringify(text)}: ${message}\n`,
  );
});

it("of a value that may hold a password nothing stands in a problem", () => {
  for (const value of ["hunter2@host", "user:hunter2@host", "http://user:hunter2@host"]) {
    const said = problems(["--shutdown-drain-ms", value]).join();
    expect(said).toMatch(/--shutdown-drain-ms: .*</);
    expect(said).not.toContain("hunter2");
  }
});
