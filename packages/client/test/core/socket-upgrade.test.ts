import { describe, expect, it } from "vitest";
import { MAX_RETRY_AFTER_MS, type UpgradeFailure, upgradeAction } from "../../src/core/socket-upgrade.ts";

function status(code: number, drained = false, retryAfterMs?: number): UpgradeFailure {
  return { kind: "status", status: code, drained, retryAfterMs };
}

describe("the answer to an upgrade decides what a socket does", () => {
  it.each([
    [
      "a drain refusal: the next node, whatever its Retry-After",
      status(503, true, 1_000),
      { kind: "next-node" },
    ],
    ["refused, reset, DNS, TLS or timeout: the next node", { kind: "unreachable" }, { kind: "next-node" }],
    ["a bad accept key or subprotocol: never", { kind: "bad-handshake" }, { kind: "never" }],
    ["a headers function that failed: backoff", { kind: "not-prepared" }, { kind: "backoff", floorMs: 0 }],
    ["503 without the marker: backoff", status(503), { kind: "backoff", floorMs: 0 }],
    [
      "503 without the marker does not own its Retry-After",
      status(503, false, 1_000),
      { kind: "backoff", floorMs: 0 },
    ],
    ["500: backoff", status(500), { kind: "backoff", floorMs: 0 }],
    ["502: backoff", status(502), { kind: "backoff", floorMs: 0 }],
    ["504: backoff", status(504), { kind: "backoff", floorMs: 0 }],
    ["408: backoff", status(408), { kind: "backoff", floorMs: 0 }],
    ["425 with Retry-After: not earlier", status(425, false, 2_000), { kind: "backoff", floorMs: 2_000 }],
    ["429 with Retry-After: not earlier", status(429, false, 2_000), { kind: "backoff", floorMs: 2_000 }],
    ["429 without: backoff", status(429), { kind: "backoff", floorMs: 0 }],
    [
      "429 with a Retry-After of a year: an hour",
      status(429, false, 3.2e10),
      { kind: "backoff", floorMs: MAX_RETRY_AFTER_MS },
    ],
    ["401: once more if something can change", status(401), { kind: "authorize" }],
    ["403: once more if something can change", status(403), { kind: "authorize" }],
    ["302: never", status(302), { kind: "never" }],
    ["404: never", status(404), { kind: "never" }],
    ["426: never", status(426), { kind: "never" }],
    ["200: never", status(200), { kind: "never" }],
  ] as const)("%s", (_, failure, action) => {
    expect(upgradeAction(failure)).toEqual(action);
  });

  it.each([
    ["never", status(503), { kind: "never" }],
    ["at-once", status(404), { kind: "next-node" }],
    ["backoff", status(404, false, 700), { kind: "backoff", floorMs: 700 }],
  ] as const)("the application's word %s goes before the table", (override, failure, action) => {
    expect(upgradeAction(failure, override)).toEqual(action);
  });

  it("but not before the drain marker", () => {
    expect(upgradeAction(status(503, true), "never")).toEqual({ kind: "next-node" });
  });
});
