import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { parseStoredObject, STONE_BYTES } from "../src/bucket/stored-object.ts";
import { ledgerTableSql } from "../src/postgres/table.ts";
import { vectors } from "./support/ledger-vectors.ts";

const page = await readFile(new URL("../../../docs/protocol/ledger.md", import.meta.url), "utf8");
const fenced = (tag: string) => page.split(`\`\`\`${tag}\n`)[1]?.split("```")[0]?.trim();

it("the page of the layouts shows the table that is made", () => {
  expect(fenced("sql")).toBe(ledgerTableSql());
});

it("the page of the layouts shows a published record and key", () => {
  const [record] = vectors.ledger.records;
  expect(fenced("json")).toBe(record?.bytes);
  expect(page).toContain(`\`id\` has \`${record?.file.slice(0, 64)}\``);
});

it("the page of the layouts tells how a claim's white space and a stone are read", () => {
  const white = [0x1b, 0xe4]
    .flatMap((byte) => [0, 2, 4, 6].map((shift) => " \t\n\r"[(byte >> shift) & 3]))
    .join("");
  const [record] = vectors.ledger.records;
  expect(parseStoredObject(Buffer.from(`${record?.bytes}${white.repeat(8)}`)).kind).toBe("record");
  expect(white.repeat(8)).toHaveLength(64);
  expect(STONE_BYTES).toBe(40);
  expect(parseStoredObject(Buffer.from(`retired ${"0a".repeat(16)}`)).kind).toBe("retired");
});
