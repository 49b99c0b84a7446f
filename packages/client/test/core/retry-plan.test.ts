import fc from "fast-check";
import { describe, expect, inject, it } from "vitest";
import type { AttemptClass } from "../../src/core/attempt-class.ts";
import {
  backoffMs,
  type Plan,
  parseRetryAfter,
  planRetry,
  type Situation,
} from "../../src/core/retry-plan.ts";

const rules = { baseDelayMs: 25, maxDelayMs: 1_000, maxRetryAfterMs: 10_000 };
const usual: Situation = {
  class: "app-status",
  attemptCount: 1,
  maxAttempts: 4,
  repeatable: true,
  replayable: true,
  freeUsed: false,
  chargedCount: 0,
  otherNode: true,
  loadBalancedOnly: false,
  retryAfterMs: undefined,
  leftMs: 30_000,
};
const classes: AttemptClass[] = [
  "not-sent",
  "refused",
  "overloaded",
  "app-status",
  "ambiguous",
  "answered",
  "committed",
];
const free: Plan = { kind: "retry", delayMs: 0, free: true };
const charged = (delayMs: number): Plan => ({ kind: "retry", delayMs, free: false });
const settle = (because: string): unknown => ({ kind: "settle", because });

describe("planRetry", () => {
  const rows: [string, Partial<Situation>, unknown][] = [
    ["the first refusal goes to another node at once, free", { class: "refused", repeatable: false }, free],
    ["so does the first that was not sent", { class: "not-sent", repeatable: false }, free],
    [
      "Retry-After of a refusal does not delay another node",
      { class: "refused", retryAfterMs: 60_000 },
      free,
    ],
    ["a second refusal is charged", { class: "refused", freeUsed: true, attemptCount: 2 }, charged(12.5)],
    ["a refusal with no other node is charged", { class: "refused", otherNode: false }, charged(12.5)],
    [
      "the same load-balanced address: free, within 100 ms",
      { class: "refused", otherNode: false, loadBalancedOnly: true },
      { kind: "retry", delayMs: 50, free: true },
    ],
    [
      "and from the third attempt on Retry-After is a floor there",
      {
        class: "refused",
        otherNode: false,
        loadBalancedOnly: true,
        freeUsed: true,
        attemptCount: 2,
        retryAfterMs: 1_000,
      },
      charged(1_000),
    ],
    [
      "overloaded: any method, charged, with backoff",
      { class: "overloaded", repeatable: false },
      charged(12.5),
    ],
    ["an application's status of an idempotent call", {}, charged(12.5)],
    ["and of another", { repeatable: false }, settle("not-repeatable")],
    ["an ambiguous idempotent call", { class: "ambiguous" }, charged(12.5)],
    ["an ambiguous other one", { class: "ambiguous", repeatable: false }, settle("not-repeatable")],
    ["the backoff doubles", { chargedCount: 2, attemptCount: 3 }, charged(50)],
    ["Retry-After is a floor", { retryAfterMs: 2_000 }, charged(2_000)],
    ["above maxRetryAfterMs it ends the call", { retryAfterMs: 10_001 }, settle("retry-after")],
    ["beyond the deadline too", { retryAfterMs: 5_000, leftMs: 4_000 }, settle("retry-after")],
    ["a body that is gone", { class: "refused", replayable: false }, settle("body")],
    ["enough attempts of a refusal", { class: "refused", attemptCount: 4 }, settle("attempts")],
    ["enough attempts otherwise: one a second while a deadline is left", { attemptCount: 4 }, charged(1_250)],
    ["but not with less than that left", { attemptCount: 4, leftMs: 1_250 }, settle("attempts")],
    ["nor without a deadline", { attemptCount: 4, leftMs: Number.POSITIVE_INFINITY }, settle("attempts")],
    ["an answer", { class: "answered" }, settle("final")],
    ["what the caller has", { class: "committed" }, settle("final")],
  ];
  it.each(rows)("%s", (_name, situation, plan) => {
    expect(planRetry({ ...usual, ...situation }, rules, 0.5)).toEqual(plan);
  });

  const anySituation: fc.Arbitrary<Situation> = fc.record({
    class: fc.constantFrom(...classes),
    attemptCount: fc.integer({ min: 1, max: 40 }),
    maxAttempts: fc.integer({ min: 1, max: 10 }),
    repeatable: fc.boolean(),
    replayable: fc.boolean(),
    freeUsed: fc.boolean(),
    chargedCount: fc.nat(40),
    otherNode: fc.boolean(),
    loadBalancedOnly: fc.boolean(),
    retryAfterMs: fc.option(fc.integer({ min: 1, max: 100_000 }), { nil: undefined }),
    leftMs: fc.oneof(fc.integer({ min: 0, max: 60_000 }), fc.constant(Number.POSITIVE_INFINITY)),
  });

  it("never repeats what may have run, unless that is harmless; nothing twice that has no body left", () => {
    fc.assert(
      fc.property(anySituation, fc.double({ min: 0, max: 0.999, noNaN: true }), (situation, random) => {
        const plan = planRetry(situation, rules, random);
        if (plan.kind === "settle") return;
        expect(situation.replayable).toBe(true);
        expect(["not-sent", "refused", "overloaded"].includes(situation.class) || situation.repeatable).toBe(
          true,
        );
        expect(["answered", "committed"]).not.toContain(situation.class);
        expect(plan.delayMs).toBeGreaterThanOrEqual(0);
        if (situation.attemptCount >= situation.maxAttempts)
          expect(plan.delayMs).toBeGreaterThanOrEqual(1_000);
        if (plan.free) expect(situation.freeUsed).toBe(false);
      }),
      { seed: inject("seed") },
    );
  });

  it("backs off with full jitter: between 0 and the ceiling", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2_000 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (n, random) => {
          const delayMs = backoffMs(n, rules, random);
          expect(delayMs).toBeGreaterThanOrEqual(0);
          expect(delayMs).toBeLessThanOrEqual(Math.min(1_000, 25 * 2 ** (n - 1)));
          expect(backoffMs(n, rules, 0)).toBe(0);
        },
      ),
      { seed: inject("seed") },
    );
  });
});

describe("parseRetryAfter", () => {
  const nowMs = Date.parse("Mon, 30 Nov 2026 12:00:00 GMT");
  it.each([
    ["1", 1_000],
    [" 30 ", 30_000],
    ["0", undefined],
    ["-5", undefined],
    ["1.5", undefined],
    ["soon", undefined],
    ["", undefined],
    ["Mon, 30 Nov 2026 12:00:07 GMT", 7_000],
    ["Mon, 30 Nov 2026 11:59:59 GMT", undefined],
  ])("%o", (value, expected) => {
    expect(parseRetryAfter(value, nowMs, Date.parse)).toBe(expected);
  });
});
