import fc from "fast-check";
import { describe, expect, inject, it } from "vitest";
import { type CloseRule, closeRule } from "../../src/core/close-codes.ts";
import { backoffDelayMs } from "../../src/core/socket-action.ts";
import { ReconnectPlan, type ReconnectPolicy } from "../../src/core/socket-reconnect.ts";

const policy: ReconnectPolicy = {
  enabled: true,
  baseMs: 250,
  maxMs: 15_000,
  spreadMs: 1_000,
  minUptimeMs: 5_000,
  maxAttempts: Number.POSITIVE_INFINITY,
  giveUpAfterMs: 0,
  refreshable: false,
};
/** Always the longest delay that can be drawn. */
const longest = (): number => 0.999_999;

function plan(changes: Partial<ReconnectPolicy> = {}, random = longest): ReconnectPlan {
  return new ReconnectPlan({ ...policy, ...changes }, random, 0);
}

function rule(code: number, reason = "", upMs = 0): CloseRule {
  return closeRule(code, reason, { upMs, minUptimeMs: policy.minUptimeMs, reconnectOnNormal: false });
}

/** The delay of a step, rounded up, or why there is none. */
function outcome(step: ReturnType<ReconnectPlan["roundOver"]>): number | string {
  return step.kind === "dial" ? Math.ceil(step.delayMs) : step.why;
}

describe("the first connect", () => {
  it("goes from candidate to candidate without a pause", () => {
    const socket = plan();
    socket.dialing("a");
    expect(outcome(socket.upgradeFailed({ kind: "next-node" }, "a", 0))).toBe(0);
    expect([...socket.tried]).toEqual(["a"]);
  });

  it("backs off after a round, with a ceiling that doubles up to the maximum", () => {
    const socket = plan();
    const delays = Array.from({ length: 8 }, () => outcome(socket.roundOver(0)));
    expect(delays).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
    expect(socket.tried.size).toBe(0);
  });

  it("prefers another node after an error, and comes back to this one when there is none", () => {
    const socket = plan();
    socket.dialing("a");
    socket.upgradeFailed({ kind: "backoff", floorMs: 0 }, "a", 0);
    expect([[...socket.tried], [...socket.avoided]]).toEqual([[], ["a"]]);
    socket.dialing("b");
    socket.upgradeFailed({ kind: "backoff", floorMs: 0 }, "b", 0);
    expect([...socket.avoided]).toEqual(["b"]);
  });

  it("waits no shorter than the server asked for", () => {
    expect(outcome(plan({}, () => 0).upgradeFailed({ kind: "backoff", floorMs: 2_000 }, "a", 0))).toBe(2_000);
  });

  it("is over with a fatal answer", () => {
    expect(outcome(plan().upgradeFailed({ kind: "never" }, "a", 0))).toBe("fatal");
  });

  it("asks once more after a 401 when headers are a function, and only once", () => {
    const socket = plan({ refreshable: true });
    socket.dialing("a");
    expect(outcome(socket.upgradeFailed({ kind: "authorize" }, "a", 0))).toBe(0);
    expect(socket.tried.has("a")).toBe(false);
    expect(outcome(socket.upgradeFailed({ kind: "authorize" }, "a", 0))).toBe("fatal");
    expect(outcome(plan().upgradeFailed({ kind: "authorize" }, "a", 0))).toBe("fatal");
  });
});

describe("a lost connection", () => {
  function opened(changes: Partial<ReconnectPolicy> = {}, random = longest): ReconnectPlan {
    const socket = plan(changes, random);
    socket.dialing("a");
    socket.opened(0);
    return socket;
  }

  it("is replaced within the spread, and candidates of that round come up to 100 ms apart", () => {
    const socket = opened();
    expect(outcome(socket.closed(rule(1012, "node draining"), "a", 10_000))).toBe(1_000);
    expect(outcome(socket.upgradeFailed({ kind: "next-node" }, "b", 11_000))).toBe(100);
  });

  it("avoids the node that went away, but not the one whose cell's owner did", () => {
    const gone = opened();
    gone.closed(rule(1001), "a", 10_000);
    expect([...gone.avoided]).toEqual(["a"]);
    const owner = opened();
    owner.closed(rule(1012, "owner unavailable"), "a", 10_000);
    expect(owner.avoided.size).toBe(0);
  });

  it("is answered at once only the first time, until a connection has lasted", () => {
    const socket = opened();
    expect(outcome(socket.closed(rule(1012), "a", 100))).toBe(1_000);
    socket.opened(1_000);
    expect(outcome(socket.closed(rule(1012), "b", 1_100))).toBe(250);
    socket.opened(2_000);
    expect(outcome(socket.closed(rule(1012), "b", 2_100))).toBe(500);
    socket.opened(3_000);
    expect(outcome(socket.closed(rule(1012), "b", 8_000))).toBe(1_000);
  });

  it("of a server that accepts and closes meets growing delays (W17)", () => {
    const socket = opened();
    const delays: (number | string)[] = [];
    for (let at = 0; at < 6; at += 1) {
      socket.opened(at * 20_000);
      delays.push(outcome(socket.closed(rule(1006, "", 100), "a", at * 20_000 + 100)));
    }
    expect(delays).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000]);
  });

  it("is final with a clean or a fatal code", () => {
    expect(outcome(opened().closed(rule(1000), "a", 10_000))).toBe("done");
    expect(outcome(opened().closed(rule(1008), "a", 10_000))).toBe("fatal");
  });

  it("with 1013 has a ceiling of a second at least", () => {
    expect(outcome(opened().closed(rule(1013), "a", 10_000))).toBe(1_000);
  });

  it("with 1015 is fatal after three in a row", () => {
    const socket = opened();
    const outcomes = [0, 1, 2, 3].map(() => {
      socket.opened(0);
      return outcome(socket.closed(rule(1015), "a", 100));
    });
    expect(outcomes).toEqual([250, 500, 1_000, "fatal"]);
  });

  it("with 3000 asks once more when headers are a function", () => {
    const socket = opened({ refreshable: true });
    expect(outcome(socket.closed(rule(3000), "a", 100))).toBe(0);
    socket.opened(200);
    expect(outcome(socket.closed(rule(3000), "a", 300))).toBe("fatal");
    expect(outcome(opened().closed(rule(3000), "a", 100))).toBe("fatal");
  });

  it("stays lost when reconnecting is off", () => {
    const socket = opened({ enabled: false });
    expect(outcome(socket.closed(rule(1006, "", 10_000), "a", 10_000))).toBe("fatal");
    expect(outcome(plan({ enabled: false }).roundOver(0))).toBe("fatal");
    expect(outcome(plan({ enabled: false }).upgradeFailed({ kind: "next-node" }, "a", 0))).toBe(0);
  });
});

describe("limits", () => {
  it("gives up after maxAttempts dials, counted anew once a connection has lasted", () => {
    const socket = plan({ maxAttempts: 2 });
    socket.dialing("a");
    socket.opened(0);
    socket.dialing("a");
    socket.opened(100);
    expect(outcome(socket.closed(rule(1001), "a", 10_000))).toBe(1_000);
    socket.dialing("b");
    expect(outcome(socket.roundOver(10_000))).toBe(250);
    socket.dialing("b");
    expect(outcome(socket.roundOver(10_000))).toBe("gave-up");
  });

  it("gives up when the next dial would come after giveUpAfterMs", () => {
    const socket = plan({ giveUpAfterMs: 1_000 });
    expect(outcome(socket.roundOver(700))).toBe(250);
    expect(outcome(socket.roundOver(700))).toBe("gave-up");
  });
});

describe("leaving a node", () => {
  it("dials another one now and avoids the old one", () => {
    const socket = plan();
    socket.dialing("a");
    socket.opened(0);
    expect(outcome(socket.leave("a", 6_000))).toBe(0);
    expect([...socket.avoided]).toEqual(["a"]);
    expect(socket.attempts).toBe(0);
  });
});

describe("delays", () => {
  it("are never negative, never above the ceiling, never above the maximum", () => {
    fc.assert(
      fc.property(
        fc.nat(10_000),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.nat(60_000),
        (failures, random, atLeastMs) => {
          const delayMs = backoffDelayMs(policy, failures, random, atLeastMs);
          expect(delayMs).toBeGreaterThanOrEqual(0);
          expect(delayMs).toBeLessThan(policy.maxMs);
        },
      ),
      { seed: inject("seed") },
    );
  });

  it("of a crowd spread over the first second and over later waves (W16)", () => {
    const crowd = inject("size") === "long" ? 20_000 : 2_000;
    let state = inject("seed");
    const random = (): number => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state / 2 ** 32;
    };
    const first: number[] = [];
    const third: number[] = [];
    for (let at = 0; at < crowd; at += 1) {
      const socket = plan({}, random);
      socket.opened(0);
      const step = socket.closed(rule(1006, "", 10_000), "a", 10_000);
      first.push(step.kind === "dial" ? step.delayMs : -1);
      socket.roundOver(11_000);
      socket.roundOver(11_000);
      const later = socket.roundOver(12_000);
      third.push(later.kind === "dial" ? later.delayMs : -1);
    }
    for (const wave of [first, third]) {
      const buckets = new Map<number, number>();
      for (const delayMs of wave) {
        const bucket = Math.floor(delayMs / 100);
        buckets.set(bucket, (buckets.get(bucket) ?? 0) + 1);
      }
      expect(Math.max(...buckets.values()) / crowd).toBeLessThan(0.15);
      expect(Math.min(...wave)).toBeGreaterThanOrEqual(0);
    }
  });
});
