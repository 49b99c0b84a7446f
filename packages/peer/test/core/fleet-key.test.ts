import { inspect } from "node:util";
import { expect, test } from "vitest";
import { FleetKey, formatFleetKey, parseFleetKey } from "../../src/core/fleet-key.ts";
import { peerVectors } from "../support/peer-vectors.ts";

const hex = "a5".repeat(32);
const { accepted, rejected } = peerVectors.secretObject;

test.each(accepted)("vector: $json is accepted", ({ json, keyHex }) => {
  expect(Buffer.from(parseFleetKey(json).reveal()).toString("hex")).toBe(keyHex);
});

test.each([
  ...rejected,
  { reason: "an array", json: "[]" },
  { reason: "null", json: "null" },
  { reason: "a version of text", json: `{"version":"1","key":"${hex}"}` },
  { reason: "a member given twice", json: `{"version":1,"key":"${"b6".repeat(32)}","key":"${hex}"}` },
  { reason: "a line feed behind the digits", json: `{"version":1,"key":"${hex}\\n"}` },
  { reason: "too long", json: `{"version":1,"key":"${hex}"}${" ".repeat(5_000)}` },
])("rejected: $reason", ({ json }) => {
  expect(() => parseFleetKey(json)).toThrow(expect.objectContaining({ code: "CELLKIT_PEER_FLEET_KEY" }));
});

test("what is written is what every node writes, and can be read", () => {
  const text = `{"version":1,"key":"${hex}"}`;
  expect(formatFleetKey(parseFleetKey(text))).toBe(text);
});

test("a key shows itself nowhere", () => {
  const key = parseFleetKey(`{"version":1,"key":"${hex}"}`);
  const shown = [
    String(key),
    `${key}`,
    JSON.stringify({ key }),
    inspect(key),
    inspect({ a: [key] }, { depth: 9 }),
  ];
  for (const text of shown) {
    expect(text).toContain("[fleet key]");
    expect(text).not.toMatch(/a5a5|165, 165/);
  }
  expect(Object.keys(key)).toEqual([]);
});

test("a refusal holds no part of the text", () => {
  for (const text of [`{"version":1,"key":"${hex}","${hex}":1}`, `{"key":"${hex}"`, `"${hex}"`]) {
    try {
      parseFleetKey(text);
      expect.unreachable();
    } catch (error) {
      expect(inspect(error, { depth: 9 })).not.toContain("a5a5");
    }
  }
});

test("a key has 32 bytes, is a copy, and is compared by its bytes", () => {
  const bytes = Buffer.alloc(32, 7);
  const key = new FleetKey(bytes);
  bytes.fill(0);
  expect(key.equals(new FleetKey(Buffer.alloc(32, 7)))).toBe(true);
  expect(key.equals(new FleetKey(Buffer.alloc(32, 8)))).toBe(false);
  key.reveal().fill(0);
  expect(key.equals(new FleetKey(Buffer.alloc(32, 7)))).toBe(true);
  expect(() => new FleetKey(Buffer.alloc(31))).toThrow(
    expect.objectContaining({ code: "CELLKIT_PEER_FLEET_KEY" }),
  );
});
