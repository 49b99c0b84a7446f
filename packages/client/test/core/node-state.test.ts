import fc from "fast-check";
import { describe, expect, inject, it } from "vitest";
import { type NodeRules, NodeState } from "../../src/core/node-state.ts";

const rules: NodeRules = {
  boundMs: 60_000,
  probes: true,
  outlier: { consecutive: 5, baseMs: 5_000, maxMs: 60_000 },
};
const half = 0.5;

function drained(nowMs = 0, retryAfterMs = 1_000): NodeState {
  const state = new NodeState(rules, nowMs, true);
  state.drained(nowMs, retryAfterMs, half);
  return state;
}

describe("NodeState", () => {
  it("a drain refusal sets aside at once, with a probe at Retry-After and a bound of 60 s", () => {
    const state = new NodeState(rules, 0, true);
    expect(state.drained(0, 2_000, half)).toEqual({
      from: "admitted",
      to: "draining",
      reason: "drain refusal",
    });
    expect(state).toMatchObject({ name: "draining", setAside: true, notBeforeMs: 2_000, wakeAtMs: 2_000 });
  });

  it.each([
    [0, 900],
    [half, 1_000],
    [0.999, 1_099.8],
  ])("spreads the first probe by a tenth (random %d)", (random, expected) => {
    const state = new NodeState(rules, 0, true);
    state.drained(0, 1_000, random);
    expect(state.wakeAtMs).toBeCloseTo(expected);
  });

  it("refusals of calls that were under way do not push the probe away", () => {
    const state = drained();
    expect(state.drained(900, 1_000, half)).toBeUndefined();
    expect(state.wakeAtMs).toBe(1_000);
  });

  it("probes after 2 s, 3 s, 4.5 s, 6.75 s, then every 10 s at most", () => {
    const state = drained();
    let nowMs = 0;
    const gaps: number[] = [];
    for (let probe = 0; probe < 7; probe += 1) {
      gaps.push(state.wakeAtMs - nowMs);
      nowMs = state.wakeAtMs;
      expect(state.wake(nowMs).probe).toBe(true);
      state.probed("unavailable", nowMs, half);
    }
    expect(gaps).toEqual([1_000, 2_000, 3_000, 4_500, 6_750, 10_000, 10_000]);
  });

  it("health 200 admits from wherever it is set aside", () => {
    expect(drained().probed("ok", 10, half)).toMatchObject({ to: "admitted", reason: "health 200" });
    const fresh = new NodeState(rules, 0, false);
    expect(fresh.name).toBe("new");
    expect(fresh.probed("ok", 10, half)).toMatchObject({ from: "new", to: "admitted" });
    expect(fresh.wakeAtMs).toBe(Number.POSITIVE_INFINITY);
  });

  it("H45 the bound puts it on probation; a refusal there sets it aside again, an answer admits", () => {
    const state = drained();
    expect(state.wake(60_000).transition).toMatchObject({ from: "draining", to: "probation" });
    expect(state.setAside).toBe(false);
    expect(state.drained(61_000, 0, half)).toMatchObject({ from: "probation", to: "draining" });
    state.wake(121_000);
    expect(state.answered(121_500)).toMatchObject({ from: "probation", to: "admitted" });
  });

  it("an answer to a request from before the drain does not end the drain", () => {
    const state = drained();
    expect(state.answered(10)).toBeUndefined();
    expect(state.name).toBe("draining");
  });

  it("H46 the fifth failure in a row ejects, for 5 s times the number of ejections, at most 60 s", () => {
    const state = new NodeState(rules, 0, true);
    const untils: (number | undefined)[] = [];
    let nowMs = 0;
    for (let round = 0; round < 14; round += 1) {
      for (let failure = 1; failure < 5; failure += 1)
        expect(state.failed(nowMs, true, half)).toBeUndefined();
      expect(state.failed(nowMs, true, half)).toMatchObject({ to: "ejected" });
      untils.push((state.ejectedUntilMs ?? 0) - nowMs);
      state.probed("ok", nowMs, half);
      nowMs += 1;
    }
    expect(untils).toEqual(
      [5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 60, 60].map((seconds) => seconds * 1_000),
    );
  });

  it("an answer between failures starts the count anew", () => {
    const state = new NodeState(rules, 0, true);
    for (let failure = 0; failure < 20; failure += 1) {
      expect(state.failed(failure, true, half)).toBeUndefined();
      if (failure % 4 === 3) state.answered(failure);
    }
  });

  it("a minute without ejection forgets the former ones", () => {
    const state = new NodeState(rules, 0, true);
    for (let failure = 0; failure < 5; failure += 1) state.failed(0, true, half);
    state.probed("ok", 0, half);
    state.answered(60_001);
    for (let failure = 0; failure < 5; failure += 1) state.failed(60_002, true, half);
    expect((state.ejectedUntilMs ?? 0) - 60_002).toBe(5_000);
  });

  it("is not ejected when too many are, or when the rule is off", () => {
    const state = new NodeState(rules, 0, true);
    for (let failure = 0; failure < 50; failure += 1) expect(state.failed(0, false, half)).toBeUndefined();
    const off = new NodeState({ ...rules, outlier: false }, 0, true);
    for (let failure = 0; failure < 50; failure += 1) expect(off.failed(0, true, half)).toBeUndefined();
  });

  it("one failure on probation ejects again", () => {
    const state = drained();
    state.wake(60_000);
    expect(state.failed(60_001, true, half)).toMatchObject({ from: "probation", to: "ejected" });
  });

  it("health 503 twice, half a second apart, makes a used node unhealthy; once does not", () => {
    const state = new NodeState(rules, 0, true);
    expect(state.probed("unavailable", 0, half)).toBeUndefined();
    expect(state.wakeAtMs).toBe(500);
    state.wake(500);
    expect(state.probed("ok", 500, half)).toBeUndefined();
    state.probed("unavailable", 600, half);
    expect(state.probed("unavailable", 1_100, half)).toMatchObject({ to: "unhealthy" });
    expect(new NodeState(rules, 0, true).probed("no-answer", 0, half)).toBeUndefined();
  });

  it("without probes a new node is used at once, and only the bound ends a drain", () => {
    const state = new NodeState({ ...rules, probes: false }, 0, false);
    expect(state.name).toBe("admitted");
    state.drained(0, 1_000, half);
    expect(state.wakeAtMs).toBe(60_000);
    state.probeAt(10);
    expect(state.wakeAtMs).toBe(60_000);
  });

  it("a removed node stays removed", () => {
    const state = new NodeState(rules, 0, true);
    expect(state.removed(0)).toMatchObject({ to: "removed" });
    expect(state.removed(0)).toBeUndefined();
    expect(state.drained(1, 0, half)).toBeUndefined();
    expect(state.probed("ok", 1, half)).toBeUndefined();
    expect(state.answered(1)).toBeUndefined();
    expect(state.presume(1)).toBeUndefined();
    expect(state.wakeAtMs).toBe(Number.POSITIVE_INFINITY);
  });

  it("whatever happens, a node that is set aside has a time at which it is looked at again", () => {
    const event = fc.oneof(
      fc.record({ kind: fc.constant("drained" as const), wait: fc.integer({ min: 0, max: 1e9 }) }),
      fc.record({ kind: fc.constantFrom("failed" as const, "answered" as const, "wake" as const) }),
      fc.record({
        kind: fc.constant("probed" as const),
        result: fc.constantFrom("ok", "unavailable", "no-answer"),
      }),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(90_000), event)), fc.boolean(), (events, admitted) => {
        const state = new NodeState(rules, 0, admitted);
        let nowMs = 0;
        for (const [passed, happened] of events) {
          nowMs += passed;
          const before = state.name;
          const transition =
            happened.kind === "drained"
              ? state.drained(nowMs, happened.wait, half)
              : happened.kind === "failed"
                ? state.failed(nowMs, true, half)
                : happened.kind === "answered"
                  ? state.answered(nowMs)
                  : happened.kind === "probed"
                    ? state.probed(happened.result as "ok", nowMs, half)
                    : state.wake(nowMs).transition;
          expect(transition?.from ?? before).toBe(before);
          expect(transition?.to ?? before).toBe(state.name);
          if (state.setAside) expect(state.wakeAtMs).toBeLessThanOrEqual(nowMs + rules.boundMs);
        }
      }),
      { seed: inject("seed") },
    );
  });
});
