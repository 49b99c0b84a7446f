import { readFileSync } from "node:fs";
import { exitCodeMeanings, withOptionsTable } from "@cellkit/daemon";
import { expect, it } from "vitest";
import { refusals } from "../src/core/refusal.ts";
import * as face from "../src/index.ts";

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");

it("its options table is the schema's", () => {
  expect(withOptionsTable(readme, face.edgeOptions)).toBe(readme);
});

it("it names every exit code that an edge can end with, and no other", () => {
  const codes = [...readme.matchAll(/^\| (\d) +\|/gm)].map(([, code]) => code);
  // Nobody fences an edge.
  expect(codes).toEqual(Object.keys(exitCodeMeanings).filter((code) => code.length === 1 && code !== "3"));
});

it("it has each answer of the edge's own, with its text", () => {
  const rows = [...readme.matchAll(/^\| (\d{3}) +\| `([^`]+)` +\|/gm)].map(([, status, text]) => [
    Number(status),
    text,
  ]);
  expect(rows).toEqual(Object.values(refusals).map(({ status, text }) => [status, text]));
});

it("it names every error that this package throws", () => {
  const classes = Object.entries(face).filter(
    ([, value]) => typeof value === "function" && value.prototype instanceof face.EdgeError,
  );
  expect(classes.length).toBe(2);
  for (const [name] of classes)
    expect(readme).toMatch(new RegExp(`^\\| \`CELLKIT_EDGE_[A-Z_]+\` +\\| \`${name}\` +\\|`, "m"));
});
