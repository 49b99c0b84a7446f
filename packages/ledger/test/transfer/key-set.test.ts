import { expect, it } from "vitest";
import { KeySet } from "../../src/transfer/key-set.ts";

const keyOf = (number: number): string => number.toString(16).padStart(64, "0");

it("knows every key that was put in, also after it grew, and no other", () => {
  const keys = new KeySet();
  for (let at = 0; at < 10_000; at++) expect(keys.add(keyOf(at))).toBe(true);
  for (let at = 0; at < 10_000; at++) expect(keys.add(keyOf(at))).toBe(false);
  expect(keys.size).toBe(10_000);
  expect(keys.add("f".repeat(64))).toBe(true);
});

it("keys that differ in any one of their digits are different", () => {
  const keys = new KeySet();
  for (let at = 0; at < 64; at++) expect(keys.add(`${"0".repeat(at)}1${"0".repeat(63 - at)}`)).toBe(true);
  expect(keys.size).toBe(64);
});
