import { expect, it } from "vitest";
import { loadDigest } from "../src/digest.ts";
import { vectors } from "./support/ledger-vectors.ts";

const digest = await loadDigest();

it.each([
  ["", "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"],
  ["abc", "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"],
])("BLAKE3 of %j is the published value", (text, hash) => {
  expect(digest.key(text)).toBe(hash);
  expect(digest.bodyHash(new TextEncoder().encode(text))).toBe(`blake3:${hash}`);
});

it.each(vectors.ledger.fileNames)("the file of an id is named as published", ({ id, record, retired }) => {
  expect([`${digest.key(id)}.json`, `${digest.key(id)}.retired`]).toEqual([record, retired]);
});

it.each(vectors.ledger.bodyHashes)("a body's hash is as published: $body_hash", ({ body, body_hash }) => {
  expect(digest.bodyHash(body)).toBe(body_hash);
  expect(digest.bodyHash(Buffer.from(body))).toBe(body_hash);
});

it("every byte of a long body counts", () => {
  const body = Buffer.alloc(70_001, "x");
  const hash = digest.bodyHash(body);
  body.write("y", 70_000);
  expect(digest.bodyHash(body)).not.toBe(hash);
});

it("is one for the whole process, and calls that take turns do not mix", async () => {
  const other = await loadDigest();
  expect([digest.key("a"), other.key("b"), digest.key("a")]).toEqual([
    other.key("a"),
    digest.key("b"),
    other.key("a"),
  ]);
});
