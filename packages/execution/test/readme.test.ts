import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { answers } from "../src/core/answer-table.ts";
import { capabilityOptionsFromEnvironment } from "../src/index.ts";

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");

/** The cells of a code's row. */
function row(code: string): string[] {
  const line = readme.split("\n").find((text) => text.startsWith(`| \`CELLKIT_EXECUTION_${code}\``)) ?? "";
  return line.split("|").map((cell) => cell.trim());
}

test.each(Object.entries(answers))(
  "the README says of %s what the table does",
  (name, { texts, sent, next, advice }) => {
    const statuses = Object.keys(texts).join(", ") || "–";
    expect(row(name).slice(2, -1)).toEqual([statuses, sent, next, advice]);
  },
);

test("the README names no code that does not exist", () => {
  const local = [
    "TOKEN_FILE",
    "CA_FILE",
    "CLIENT_CERTIFICATE",
    "CLIENT_REFUSED",
    "ROUTER_UNTRUSTED",
    "UNREACHABLE",
    "ANSWER_LOST",
    "ANSWER_UNUSABLE",
  ];
  const own = ["OPTION", "ID", "JSON", "REQUEST", "DEADLINE", "ABORTED", "RECORD_REJECTED"];
  const named = [...readme.matchAll(/^\| `CELLKIT_EXECUTION_([A-Z_]+)`/gm)].map(([, name]) => name);
  expect(named.toSorted()).toEqual([...Object.keys(answers), ...local, ...own].toSorted());
});

test("the README has every variable that a probe is configured with, and its limit", () => {
  const read: string[] = [];
  const env = new Proxy({}, { get: (_, name) => void read.push(String(name)) });
  const { url } = capabilityOptionsFromEnvironment(env);
  const rows = [...readme.matchAll(/^\| `((?:CELLN|SSL)_\w+)` \|/gm)].map(([, name]) => name);
  expect(rows.toSorted()).toEqual([...new Set(read)].toSorted());
  expect(readme).toContain(`| \`CELLN_ROUTER_URL\` | \`${url}\` |`);
});
