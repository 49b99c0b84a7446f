import { expect, it } from "vitest";
import { optionsOf, optionsTable, parseConfig, withOptionsTable } from "../../src/index.ts";
import { schema } from "../support/schema.ts";

function help(): string {
  const parsed = parseConfig(schema, {
    name: "toy",
    version: "1.2.3",
    description: `A toy. ${"It explains itself at some length. ".repeat(8)}`.trim(),
    argv: ["--help"],
    env: {},
    examples: [{ command: "toy --bucket s3://b", description: "The shortest start." }],
  });
  return parsed.kind === "help" ? parsed.text : "";
}

it("names every option with its variables, default and description", () => {
  const text = help();
  for (const option of optionsOf(schema)) {
    if (option.flag !== undefined) expect(text).toContain(option.flag);
    for (const name of option.env) expect(text).toContain(name);
    expect(text).toContain(option.description);
    if (option.defaultText !== undefined && option.defaultText !== "") {
      expect(text).toContain(`default: ${option.defaultText}`);
    }
  }
});

it.each([
  ["the usage first", /^Usage: toy \[options\]\n/],
  [
    "options under their section",
    /\nStorage:\n {2}--bucket URL {2}\[TOY_BUCKET\]; required\n {6}Where cells live\./,
  ],
  [
    "the unit of a number as its placeholder",
    /--shutdown-drain-ms MS {2}\[TOY_SHUTDOWN_DRAIN_MS\]; default: 25000/,
  ],
  ["both forms of a boolean", /--\[no-\]reload/],
  ["the words of an enum", /--mode refuse\|serve/],
  ["that a list may be repeated", /--peer PEER .*may be given several times/],
  ["an option of the environment without a flag", /\n {2}TOY_SECRET/],
  [
    "the exit codes that every daemon has",
    /Exit codes:\n {2}0 {4}stopped cleanly\n {2}1 .*\n {2}2 .*\n {2}4 .*\n {2}130 .*\n\n/,
  ],
  ["examples", /Examples:\n {2}# The shortest start\.\n {2}toy --bucket s3:\/\/b\n$/],
])("shows %s", (_, pattern) => {
  expect(help()).toMatch(pattern);
});

it("breaks lines at 100 columns", () => {
  for (const line of help().split("\n")) expect(line.length).toBeLessThanOrEqual(100);
});

it("the README's table has a row for each option", () => {
  const rows = optionsTable(schema).split("\n");
  expect(rows).toHaveLength(optionsOf(schema).length + 2);
  expect(rows).toContain("| `--bucket URL` | `TOY_BUCKET` | required | Where cells live. |");
  expect(rows).toContain("| `--mode refuse\\|serve` | – | `refuse` | What a drain does first. |");
  expect(rows).toContain("| – | `TOY_SECRET` | – | The key's secret half. |");
});

it("a README is brought up to date between its two marks, and then stays as it is", () => {
  const readme = "# toy\n\n<!-- options -->\nold\n<!-- /options -->\n\nend\n";
  const fresh = withOptionsTable(readme, schema);
  expect(fresh).toContain(optionsTable(schema));
  expect(fresh).not.toContain("old");
  expect(fresh.endsWith("\n\nend\n")).toBe(true);
  expect(withOptionsTable(fresh, schema)).toBe(fresh);
});
