import fc from "fast-check";
import { describe, expect, inject, it } from "vitest";
import { AddressSet, nameProblem, refreshMs } from "../../src/core/address-set.ts";
import { RetryBudget } from "../../src/core/retry-budget.ts";
import { powerOfTwo } from "../../src/core/selection.ts";

describe("RetryBudget", () => {
  const rules = { ratio: 0.2, minPerSecond: 10, windowMs: 10_000 };

  it("is ratio x calls + minPerSecond, less what was charged, over the window", () => {
    const budget = new RetryBudget(rules);
    expect(budget.balance(0)).toBe(100);
    for (let call = 0; call < 50; call += 1) budget.started(100);
    expect(budget.balance(200)).toBeCloseTo(110);
    expect(budget.charge(300)).toBe(true);
    expect(budget.balance(300)).toBeCloseTo(109);
    expect(budget.balance(9_999)).toBeCloseTo(109);
    expect(budget.balance(10_000)).toBe(100);
  });

  it("empty charges nothing, and fills again as the window moves", () => {
    const budget = new RetryBudget({ ratio: 0, minPerSecond: 1, windowMs: 1_000 });
    expect([budget.charge(0), budget.charge(0), budget.charge(999), budget.charge(1_000)]).toEqual([
      true,
      false,
      false,
      true,
    ]);
  });

  it("never lets more through in a window than it may", () => {
    const step = fc.tuple(fc.nat(3_000), fc.boolean());
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
        const small = { ratio: 0.2, minPerSecond: 1, windowMs: 10_000 };
        const budget = new RetryBudget(small);
        let nowMs = 0;
        let charged = 0;
        let calls = 0;
        for (const [passedMs, call] of steps) {
          nowMs += passedMs;
          if (call) {
            budget.started(nowMs);
            calls += 1;
          } else if (budget.charge(nowMs)) charged += 1;
        }
        const windows = Math.ceil(nowMs / small.windowMs) + 1;
        expect(charged).toBeLessThanOrEqual(0.2 * calls + 10 * windows);
      }),
      { seed: inject("seed") },
    );
  });
});

describe("powerOfTwo", () => {
  const node = (inflight: number, weight = 1) => ({ inflight, weight });

  it("takes the one with fewer requests in flight per weight", () => {
    const idle = node(1);
    const busy = node(2);
    const big = node(4, 8);
    for (const random of [0, 0.4, 0.6, 0.99]) {
      expect(powerOfTwo([idle, busy], () => random)).toBe(idle);
      expect(powerOfTwo([busy, idle], () => random)).toBe(idle);
      expect(powerOfTwo([big, idle], () => random)).toBe(big);
    }
  });

  it("of none is none, of one is that one", () => {
    const only = node(9);
    expect(powerOfTwo([], Math.random)).toBeUndefined();
    expect(powerOfTwo([only], Math.random)).toBe(only);
  });

  it("always compares two distinct candidates: the busiest is never chosen", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 2, max: 20 }),
        fc.double({ min: 0, max: 0.999999, noNaN: true }),
        fc.double({ min: 0, max: 0.999999, noNaN: true }),
        (count, one, two) => {
          const nodes = Array.from({ length: count }, (_, index) => node(index));
          const draws = [one, two];
          expect(powerOfTwo(nodes, () => draws.shift() ?? 0)?.inflight).toBeLessThan(count - 1);
        },
      ),
      { seed: inject("seed") },
    );
  });

  it("a tie is a coin: both get their share", () => {
    const nodes = [node(0), node(0)];
    let first = 0;
    let state = 1;
    const random = (): number => {
      state = (state * 48_271) % 2_147_483_647;
      return state / 2_147_483_647;
    };
    for (let draw = 0; draw < 1_000; draw += 1) if (powerOfTwo(nodes, random) === nodes[0]) first += 1;
    expect(first).toBeGreaterThan(400);
    expect(first).toBeLessThan(600);
  });
});

describe("AddressSet", () => {
  it("holds what was in one of the last answers, whatever came", () => {
    const answers = fc.array(fc.uniqueArray(fc.constantFrom("a", "b", "c", "d"), { maxLength: 4 }));
    fc.assert(
      fc.property(answers, fc.integer({ min: 1, max: 4 }), (given, missesToRemove) => {
        const set = new AddressSet(missesToRemove);
        let before: readonly string[] = [];
        for (const answer of given) {
          const changed = set.answered(answer);
          expect(changed).toBe([...before].sort().join() !== [...set.addresses].sort().join());
          before = set.addresses;
        }
        const counted = given.filter((answer) => answer.length > 0).slice(-missesToRemove);
        expect(new Set(set.addresses)).toEqual(new Set(counted.flat()));
      }),
      { seed: inject("seed") },
    );
  });

  it.each([
    [0, 0.5, 1_000],
    [5_000, 0.5, 5_000],
    [3_600_000, 0.5, 30_000],
    [5_000, 0, 4_500],
    [5_000, 1, 5_500],
  ])("D02 a TTL of %d ms (random %d) is asked again after %d ms", (ttlMs, random, expected) => {
    expect(refreshMs(ttlMs, 1_000, 30_000, random)).toBeCloseTo(expected);
  });

  it.each([
    ["app.demo.svc.cluster.local", undefined],
    ["localhost.", undefined],
    ["app.demo.svc", undefined],
    ["app", "app.default.svc.cluster.local."],
    ["app.demo", "app.demo.svc.cluster.local."],
  ])("D12 %s", (name, advice) => {
    if (advice === undefined) expect(nameProblem(name)).toBeUndefined();
    else expect(nameProblem(name)).toContain(advice);
  });
});
