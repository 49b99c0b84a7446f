import { expect, test } from "vitest";
import { decideRetry, retryClassOf, routeBackoffMs } from "../../src/core/retry-class.ts";

test.each([
  ["no connection", { connected: false }, "never-connected"],
  ["409 with the marker", { connected: true, status: 409, staleMarker: true }, "not-owner"],
  ["409 without", { connected: true, status: 409 }, "ambiguous"],
  [
    "the marker on 200, which an application can set",
    { connected: true, status: 200, staleMarker: true },
    "ambiguous",
  ],
  ["the marker on 503", { connected: true, status: 503, staleMarker: true }, "ambiguous"],
  ["a reset after sending", { connected: true }, "ambiguous"],
] as const)("%s: %s", (_what, attempt, expected) => {
  expect(retryClassOf(attempt)).toBe(expected);
});

const none = { notOwner: 0, neverConnected: 0 };

test.each([
  [2, "not-owner", none, false, "retry"],
  [2, "not-owner", { notOwner: 1, neverConnected: 0 }, false, "fail"],
  [2, "not-owner", { notOwner: 0, neverConnected: 1 }, false, "retry"],
  [2, "never-connected", none, false, "retry"],
  [2, "never-connected", { notOwner: 1, neverConnected: 0 }, false, "retry"],
  [2, "never-connected", { notOwner: 0, neverConnected: 1 }, false, "fail"],
  [5, "not-owner", { notOwner: 9, neverConnected: 0 }, false, "another-owner"],
  [5, "not-owner", none, true, "fail"],
  [5, "never-connected", none, false, "retry"],
  [5, "never-connected", { notOwner: 0, neverConnected: 1 }, false, "fail"],
  [2, "ambiguous", none, false, "fail"],
  [5, "ambiguous", none, false, "fail"],
] as const)(
  "version %i, %s, after %j, body started %s: %s",
  (version, failure, done, bodyStarted, expected) => {
    expect(decideRetry({ version, failure, done, bodyStarted })).toBe(expected);
  },
);

test("a call of version 2 makes at most three attempts", () => {
  const done = { notOwner: 0, neverConnected: 0 };
  let attempts = 1;
  for (const failure of ["not-owner", "never-connected", "not-owner", "never-connected"] as const) {
    if (decideRetry({ version: 2, failure, done, bodyStarted: false }) === "fail") break;
    done[failure === "not-owner" ? "notOwner" : "neverConnected"] += 1;
    attempts += 1;
  }
  expect(attempts).toBe(3);
});

test("the wait for another owner grows from 10 to 250 ms", () => {
  expect([0, 1, 2, 3, 4, 5, 6, 1_000].map(routeBackoffMs)).toEqual([10, 20, 40, 80, 160, 250, 250, 250]);
});
