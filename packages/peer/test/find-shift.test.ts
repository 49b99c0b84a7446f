import { describe, expect, it } from "vitest";
import { findShift } from "../src/find-shift.ts";

const windowMs = 30_000;
/** A node whose clock is ahead by `skewMs`, and how often it was asked. */
function node(skewMs: number): { accepts: (shiftMs: number) => Promise<boolean>; asked: () => number } {
  let count = 0;
  return {
    accepts: async (shiftMs) => {
      count += 1;
      return Math.abs(skewMs - shiftMs) <= windowMs;
    },
    asked: () => count,
  };
}

describe("without a hint, a clock within five minutes is found to a second", () => {
  it.each([31_000, -31_000, 45_000, 79_999, -80_001, 150_000, -299_000, 329_000])("%s ms", async (skewMs) => {
    const { accepts, asked } = node(skewMs);
    const found = await findShift(accepts, windowMs);
    expect(Math.abs((found ?? Number.NaN) - skewMs)).toBeLessThanOrEqual(1_000);
    expect(asked()).toBeLessThan(22);
  });
});

it("a hint finds a clock that is hours off, at once", async () => {
  const { accepts, asked } = node(-7_200_000);
  expect(await findShift(accepts, windowMs, [-7_190_000])).toBeCloseTo(-7_200_000, -4);
  expect(asked()).toBeLessThan(9);
});

it("a node that accepts no time is not made out to be skewed", async () => {
  expect(await findShift(async () => false, windowMs, [1])).toBeUndefined();
});
