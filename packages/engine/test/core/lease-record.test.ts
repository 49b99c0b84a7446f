import { describe, expect, it } from "vitest";
import { expiredLease, isLeaseKey, parseLease } from "../../src/core/lease-record.ts";

const record =
  '{"node":"47c19be2efc8e7ee58998d1928ebfe14","address":"10.0.0.7:8081","expires_ms":1796040115561,"instance":13686109040642576873,"draining":false,"write":7}';

describe("parseLease", () => {
  it("reads what the engine needs", () => {
    expect(parseLease(record)).toEqual({
      node: "47c19be2efc8e7ee58998d1928ebfe14",
      address: "10.0.0.7:8081",
      expiresMs: 1796040115561,
      draining: false,
    });
  });

  it.each([
    ["no JSON", "{"],
    ["another shape", '{"node":"a"}'],
    ["a time that is no whole number", record.replace("1796040115561", "1.5")],
  ])("does not understand %s", (_, text) => {
    expect(parseLease(text)).toBeUndefined();
  });
});

describe("expiredLease", () => {
  it("changes the time and keeps every other byte, the 64-bit instance included", () => {
    expect(expiredLease(record)).toBe(record.replace("1796040115561", "1"));
  });

  it("is the same for a record that is expired already", () => {
    const expired = expiredLease(record) ?? "";
    expect(expiredLease(expired)).toBe(expired);
  });

  it("is undefined for a record that it does not understand", () => {
    expect(expiredLease('{"expires_ms":5}')).toBeUndefined();
  });

  it("is undefined when the text that looks like the time is not the time", () => {
    const tricky = `{"note":"\\"expires_ms\\":1","x":{"expires_ms":3},${record.slice(1)}`;
    expect(expiredLease(tricky)).toBeUndefined();
  });
});

describe("isLeaseKey", () => {
  it.each([
    ["v1/nodes/47c19be2efc8e7ee58998d1928ebfe14.json", true],
    ["v1/nodes/47c19be2efc8e7ee58998d1928ebfe14.probe", false],
    ["v1/nodes/other.json", false],
    ["nodes/47c19be2efc8e7ee58998d1928ebfe14.json", false],
  ])("%s: %s", (key, answer) => {
    expect(isLeaseKey(key)).toBe(answer);
  });
});
