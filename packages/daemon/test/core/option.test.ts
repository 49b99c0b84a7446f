import { expect, it } from "vitest";
import { z } from "zod";
import { type ConfigSchema, optionsOf, SchemaError } from "../../src/index.ts";
import { schema } from "../support/schema.ts";

it("an option's names come from its key", () => {
  const flags = optionsOf(schema).map(({ flag }) => flag);
  expect(flags.slice(0, 5)).toEqual(["bucket", "region", undefined, "shutdown-drain-ms", "weight"]);
});

it.each([
  ["s3Endpoint", "s3-endpoint"],
  ["internalListen", "internal-listen"],
  ["maxRSSBytes", "max-rssbytes"],
  ["a", "a"],
])("%s becomes --%s", (key, flag) => {
  const [option] = optionsOf(z.strictObject({ [key]: z.string().meta({ description: "x" }) }));
  expect(option?.flag).toBe(flag);
});

it("finds the description below and above a default or optional", () => {
  const both = z.strictObject({
    below: z.string().meta({ description: "x" }).default("a"),
    above: z.string().default("a").meta({ description: "x" }),
    between: z.string().meta({ description: "x" }).optional().nullable(),
  });
  expect(optionsOf(both).map(({ description, required }) => [description, required])).toEqual([
    ["x", false],
    ["x", false],
    ["x", false],
  ]);
});

const described = { description: "x" };
const bad: Array<[rule: string, schema: ConfigSchema, message: RegExp]> = [
  ["an object that is not strict", z.object({ a: z.string().meta(described) }), /is not strict/],
  ["a field without a description", z.strictObject({ a: z.string() }), /"a" of the schema: its meta/],
  [
    "a key in meta that nobody reads",
    z.strictObject({ a: z.string().meta({ ...described, enviroment: "A" }) }),
    /its meta/,
  ],
  [
    "a variable in lower case",
    z.strictObject({ a: z.string().meta({ ...described, env: "a" }) }),
    /its meta/,
  ],
  [
    "an object as a value",
    z.strictObject({ a: z.object({}).meta(described) }),
    /type object cannot be written as text/,
  ],
  [
    "an option that nothing can set",
    z.strictObject({ a: z.string().meta({ ...described, flag: false }) }),
    /neither a flag nor a variable/,
  ],
  [
    "a boolean by position",
    z.strictObject({ a: z.boolean().meta({ ...described, positional: true }) }),
    /cannot be a boolean/,
  ],
  [
    "a list by position that is not the last",
    z.strictObject({
      a: z.array(z.string()).meta({ ...described, positional: true }),
      b: z.string().meta({ ...described, positional: true }),
    }),
    /must be the last/,
  ],
  [
    "a flag of every program",
    z.strictObject({ printConfig: z.string().meta(described) }),
    /--print-config already belongs/,
  ],
  [
    "a boolean's no- form that is another option",
    z.strictObject({ reload: z.boolean().meta(described), noReload: z.string().meta(described) }),
    /--no-reload already belongs to reload/,
  ],
  [
    "a variable of two options",
    z.strictObject({
      a: z.string().meta({ ...described, env: "A" }),
      b: z.string().meta({ ...described, env: "A" }),
    }),
    /"b" of the schema: A already belongs to a/,
  ],
];

it.each(bad)("refuses %s", (_, broken, message) => {
  expect(() => optionsOf(broken)).toThrow(SchemaError);
  expect(() => optionsOf(broken)).toThrow(message);
});
