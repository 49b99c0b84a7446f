import { describe, expect, it } from "vitest";
import { Fleet } from "../src/fleet.ts";
import type { FleetOptions, RetryOptions } from "../src/options.ts";
import { resolveRetry } from "../src/options.ts";

const good: FleetOptions = { authority: "http://app.internal", endpoints: ["http://10.0.0.1:8080"] };

describe("options", () => {
  const bad: [string, Partial<FleetOptions>, RegExp][] = [
    ["an authority that is no origin", { authority: "app.internal" }, /app\.internal/],
    ["an authority of another protocol", { authority: "ws://app.internal" }, /http/],
    ["no endpoint", { endpoints: [] }, /empty/],
    ["an unknown marker", { drainMarker: "loose" as "strict" }, /loose/],
    ["a negative time", { retry: { deadlineMs: -1 } }, /deadlineMs is -1/],
    ["no attempt", { retry: { maxAttempts: 0 } }, /maxAttempts is 0/],
    ["a text for a number", { retry: { baseDelayMs: "25" as unknown as number } }, /baseDelayMs/],
    ["a budget below zero", { retry: { budget: { ratio: -0.1 } } }, /budget\.ratio/],
    ["a head start of nothing", { retry: { bodyHeadStart: { firstChunkBytes: 0 } } }, /firstChunkBytes/],
    ["a probe that cannot answer", { health: { timeoutMs: 0 } }, /health\.timeoutMs/],
    ["an ejection after nothing", { outlier: { consecutive: 0 } }, /outlier\.consecutive/],
  ];
  it.each(bad)("refuses %s", (_name, options, message) => {
    expect(() => new Fleet({ ...good, ...options })).toThrow(
      expect.objectContaining({ code: "CELLKIT_CLIENT_CONFIG", message: expect.stringMatching(message) }),
    );
  });

  it("a call's options go over the fleet's, and leave the rest", () => {
    const fleet = resolveRetry({ maxAttempts: 2, budget: { ratio: 1 }, bodyHeadStart: false });
    const call: RetryOptions = { deadlineMs: 5, budget: false, retryStatuses: [500] };
    expect(resolveRetry(call, fleet)).toMatchObject({
      maxAttempts: 2,
      deadlineMs: 5,
      budget: false,
      bodyHeadStart: false,
      retryStatuses: new Set([500]),
    });
    expect(fleet.budget).toEqual({ ratio: 1, minPerSecond: 10, windowMs: 10_000 });
  });
});
