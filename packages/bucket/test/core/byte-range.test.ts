import { describe, expect, it } from "vitest";
import { resolveRange } from "../../src/core/byte-range.ts";

describe("a Range header", () => {
  it.each([
    ["bytes=0-0", 10, { start: 0, end: 1 }],
    ["bytes=2-4", 10, { start: 2, end: 5 }],
    ["bytes=8-", 10, { start: 8, end: 10 }],
    ["bytes=8-99", 10, { start: 8, end: 10 }],
    ["bytes=-3", 10, { start: 7, end: 10 }],
    ["bytes=-30", 10, { start: 0, end: 10 }],
    ["bytes=10-", 10, "unsatisfiable"],
    ["bytes=-0", 10, "unsatisfiable"],
    ["bytes=0-", 0, "unsatisfiable"],
    ["bytes=-5", 0, "unsatisfiable"],
    ["bytes=5-2", 10, undefined],
    ["bytes=-", 10, undefined],
    ["bytes=0-1,3-4", 10, undefined],
    ["lines=0-1", 10, undefined],
    ["bytes=a-b", 10, undefined],
  ])("%s of %i bytes", (header, size, expected) => {
    expect(resolveRange(header, size)).toEqual(expected);
  });
});
