import { type CommandContext, defineCommand } from "@cellkit/daemon";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { parseCell } from "../src/cell-name.ts";
import { withShortFlags } from "../src/short-flags.ts";

const schema = z.strictObject({
  place: z.string().default("").meta({ description: "Where.", positional: true }),
  header: z.array(z.string()).default([]).meta({ description: "A header." }),
  include: z.boolean().default(false).meta({ description: "More." }),
});

async function parse(...argv: string[]): Promise<unknown> {
  let given: unknown;
  const command = defineCommand<typeof schema, CommandContext>({
    schema,
    run: async (config) => {
      given = config;
      return 0;
    },
  });
  const parsed = withShortFlags(command, { "-H": "--header", "-i": "--include" }).parse({
    name: "test",
    version: "1",
    description: "Test.",
    argv,
    env: {},
  });
  if (parsed.kind === "run")
    await parsed.run({ signal: new AbortController().signal, defer() {}, note() {}, print() {} });
  return given;
}

describe("a short flag stands for the long one", () => {
  it.each<[string, string[], object]>([
    ["with its value after it", ["-H", "a: b"], { header: ["a: b"] }],
    ["with its value behind it", ["-Ha: b"], { header: ["a: b"] }],
    ["several times", ["-H", "a", "-H", "b"], { header: ["a", "b"] }],
    ["without a value", ["-i"], { include: true }],
    ["beside long ones", ["-i", "--header=x", "here"], { include: true, header: ["x"], place: "here" }],
    ["but not after --", ["--", "-i"], { include: false, place: "-i" }],
  ])("%s", async (_, argv, expected) => {
    expect(await parse(...argv)).toMatchObject(expected);
  });

  it("an unknown one is told", async () => {
    await expect(parse("-q")).rejects.toThrow(/-q: unknown flag/);
  });
});

describe("a cell is", () => {
  it.each([
    ["Room:lobby", { className: "Room", name: "lobby" }],
    ["Room:a:b /c", { className: "Room", name: "a:b /c" }],
    ["$Ro\u00f6m_1:x", { className: "$Ro\u00f6m_1", name: "x" }],
    [`Room:${"aB".repeat(32)}`, { className: "Room", id: "aB".repeat(32) }],
    [`Room:${"a".repeat(63)}`, { className: "Room", name: "a".repeat(63) }],
  ])("%s", (text, cell) => {
    expect(parseCell(text)).toEqual(cell);
  });

  it.each(["", "Room", "Room:", ":lobby", "1Room:x", "Ro om:x", "Room/x"])("not %j", (text) => {
    expect(parseCell(text)).toBeUndefined();
  });
});
