import { describe, expect, it } from "vitest";
import { backOffMs } from "../../src/core/back-off.ts";

describe("backOffMs", () => {
  it.each([
    ["the first crash", 1, 0, 50],
    ["the first crash, other end of the jitter", 1, 0.999999, 100],
    ["the third crash", 3, 0, 200],
    ["many crashes", 50, 0, 5000],
    ["many crashes, other end", 50, 0.999999, 10_000],
    ["no crash at all", 0, 0, 50],
  ])("after %s", (_, crashCount, random, expected) => {
    expect(backOffMs(crashCount, random)).toBeCloseTo(expected, 1);
  });
});
