import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Attempt } from "../src/attempts.ts";
import * as errors from "../src/errors.ts";

const attempts: Attempt[] = [
  {
    n: 1,
    node: "10.0.0.1:8080",
    class: "ambiguous",
    error: new Error("reset"),
    startedAt: 0,
    durationMs: 1,
    delayBeforeMs: 0,
    free: false,
    hedge: false,
  },
];
const cause = new Error("cause");
const call = ["POST", "/order", attempts, { cause }] as const;

const rows: [errors.FleetError, string, RegExp][] = [
  [
    new errors.AmbiguousRequestError(...call),
    "CELLKIT_CLIENT_AMBIGUOUS",
    /POST \/order.*10\.0\.0\.1:8080.*reset.*idempotencyKey/,
  ],
  [new errors.AttemptsExhaustedError(...call), "CELLKIT_CLIENT_ATTEMPTS", /in 1 attempts.*10\.0\.0\.1:8080/],
  [new errors.RetryBudgetError(...call), "CELLKIT_CLIENT_BUDGET", /retry\.budget/],
  [new errors.BodyNotReplayableError(...call), "CELLKIT_CLIENT_BODY", /replay: \(\) => body/],
  [
    new errors.DeadlineExceededError("GET", "/", 30_000, attempts),
    "CELLKIT_CLIENT_DEADLINE",
    /30000 ms.*deadlineMs/,
  ],
  [new errors.NoEndpointError(5_000, { cause }), "CELLKIT_CLIENT_NO_ENDPOINT", /5000 ms/],
  [new errors.ConfigurationError("deadlineMs is -1", { cause }), "CELLKIT_CLIENT_CONFIG", /-1/],
  [
    new errors.SocketFatalError("upgrade refused with 401", { status: 401 }, { cause }),
    "CELLKIT_CLIENT_WS_FATAL",
    /401/,
  ],
  [new errors.SendBufferFullError(256, 1_000), "CELLKIT_CLIENT_WS_BUFFER", /256 messages, 1000 bytes/],
  [new errors.UnsupportedNodeError("20.1.0", "22.19"), "CELLKIT_CLIENT_NODE_VERSION", /22\.19.*20\.1\.0/],
  [new errors.MessageTooLargeError(9, 8), "CELLKIT_CLIENT_WS_TOO_LARGE", /9 bytes.*8/],
];

describe("errors", () => {
  it.each(rows)("%s has its code, name, and what to do", (error, code, message) => {
    expect(error).toBeInstanceOf(errors.FleetError);
    expect(error.code).toBe(code);
    expect(error.message).toMatch(message);
    expect(error.name).toBe(code === "CELLKIT_CLIENT_DEADLINE" ? "TimeoutError" : error.constructor.name);
    if (error.cause !== undefined) expect(error.cause).toBe(cause);
  });

  it("are all in this table, and in the README's", () => {
    const classes = Object.values(errors).filter((value) => value !== errors.FleetError);
    expect(new Set(rows.map(([error]) => error.constructor))).toEqual(new Set(classes));
    const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
    for (const [, code] of rows) expect(readme).toContain(`\`${code}\``);
  });
});
