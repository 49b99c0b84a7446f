import { readFileSync } from "node:fs";
import { exitCodeMeanings, optionsTable } from "@cellkit/daemon";
import { expect, it } from "vitest";
import { celldOptions } from "../src/config.ts";
import { otherVariables } from "../src/environment.ts";
import * as face from "../src/index.ts";
import { environmentTable } from "./support/environment-table.ts";

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");

/** A table's rows without the padding that the formatter gives to its cells. */
function rows(table: string): string[] {
  return table
    .trim()
    .split("\n")
    .map((line) => line.replaceAll(/ *(?<!\\)\| */g, "|").replaceAll(/-+\|/g, "-|"));
}

/** The rows between two markers of the README. */
function rowsOf(name: string): string[] {
  return rows(new RegExp(`<!-- ${name} -->\n([\\s\\S]*?)<!-- /${name} -->`).exec(readme)?.[1] ?? "");
}

it("its options table is the schema's", () => {
  expect(rowsOf("options")).toEqual(rows(optionsTable(celldOptions)));
});

it("its environment table has each variable that is no option", () => {
  expect(rowsOf("environment")).toEqual(rows(environmentTable(otherVariables)));
});

it("it names every exit code", () => {
  const codes = [...readme.matchAll(/^\| (\d+) +\|/gm)].map(([, code]) => code);
  expect(codes).toEqual(Object.keys(exitCodeMeanings));
});

it("it names every error that this package throws", () => {
  const classes = Object.entries(face).filter(
    ([, value]) => typeof value === "function" && value.prototype instanceof face.CelldError,
  );
  expect(classes.length).toBeGreaterThan(0);
  for (const [name] of classes)
    expect(readme).toMatch(new RegExp(`^\\| \`CELLKIT_CELLD_[A-Z_]+\` +\\| \`${name}\` +\\|`, "m"));
});
