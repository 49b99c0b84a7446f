import fc from "fast-check";
import { expect, inject, test } from "vitest";
import { compareInstants, parseInstant } from "../../src/core/instant.ts";

const runs = { seed: inject("seed"), numRuns: inject("size") === "long" ? 20_000 : 500 };

test("seconds are those of Date, for every day", () => {
  const date = fc.date({
    min: new Date("0001-01-01T00:00:00Z"),
    max: new Date("9999-12-31T23:59:59Z"),
    noInvalidDate: true,
  });
  fc.assert(
    fc.property(date, (at) => {
      expect(parseInstant(at.toISOString())?.seconds).toBe(Math.floor(at.getTime() / 1000));
    }),
    runs,
  );
});

test.each([
  ["2026-09-07T12:00:00Z", "2026-09-07T12:00:00.000Z", 0],
  ["2026-09-07T12:00:00.0000000001Z", "2026-09-07T12:00:00Z", 1],
  ["2026-09-07T12:00:00.1Z", "2026-09-07T12:00:00.09Z", 1],
  ["2026-09-07T14:00:00+02:00", "2026-09-07T12:00:00Z", 0],
  ["2026-09-07T11:59:59Z", "2026-09-07T06:30:00-05:30", -1],
  ["2016-12-31T23:59:60Z", "2016-12-31T23:59:59.9Z", 1],
])("%s against %s", (a, b, sign) => {
  const [left, right] = [parseInstant(a), parseInstant(b)];
  if (left === undefined || right === undefined) throw new TypeError("both are times");
  expect(Math.sign(compareInstants(left, right))).toBe(sign);
});

test.each([
  "2026-02-29T00:00:00Z",
  "1900-02-29T00:00:00Z",
  "2026-04-31T00:00:00Z",
  "2026-13-01T00:00:00Z",
  "2026-00-01T00:00:00Z",
  "2026-01-00T00:00:00Z",
  "2026-01-01T24:00:00Z",
  "2026-01-01T00:60:00Z",
  "2026-01-01T00:00:61Z",
  "2026-01-01T00:00:00",
  "2026-01-01 00:00:00Z",
  "2026-01-01T00:00:00+24:00",
  "2026-01-01T00:00:00.Z",
  "now",
])("%s is no time", (text) => {
  expect(parseInstant(text)).toBeUndefined();
});
