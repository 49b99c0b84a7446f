import { describe, expect, it } from "vitest";
import { Keepalive, type KeepalivePolicy } from "../../src/core/socket-keepalive.ts";

const policy: KeepalivePolicy = {
  mode: "auto-response",
  request: "ping",
  response: "pong",
  intervalMs: 20_000,
  timeoutMs: 5_000,
};
const PONG = { kind: "text", text: "pong" } as const;
const DATA = { kind: "binary" } as const;

/** No jitter: 0.5 is the middle of ±10 %. */
function keepalive(changes: Partial<KeepalivePolicy> = {}): Keepalive {
  return new Keepalive({ ...policy, ...changes }, () => 0.5, 0);
}

/** A wake-up exactly when it was due. */
function onTime(subject: Keepalive, bytesReceived = 0): ReturnType<Keepalive["wake"]> & { atMs: number } {
  const atMs = subject.wakeAtMs;
  return { ...subject.wake(atMs, atMs, bytesReceived), atMs };
}

/** Past the first cycle, in which a protocol ping goes along. */
function proven(): { subject: Keepalive; nowMs: number } {
  const subject = keepalive();
  const { atMs } = onTime(subject);
  subject.received(PONG, atMs + 10);
  return { subject, nowMs: atMs + 10 };
}

describe("a connection that is idle", () => {
  it("is pinged once after the interval, and the answer is swallowed and measured (W18)", () => {
    const { subject, nowMs } = proven();
    expect(subject.wakeAtMs).toBe(nowMs + 20_000);
    const wake = onTime(subject);
    expect(wake.send).toEqual(["text"]);
    expect(subject.received(PONG, wake.atMs + 7)).toEqual({ swallow: true, rttMs: 7 });
    expect(subject.wakeAtMs).toBe(wake.atMs + 7 + 20_000);
  });

  it("gets a protocol ping along with the first text", () => {
    expect(onTime(keepalive()).send).toEqual(["text", "protocol"]);
  });

  it("varies its interval by a tenth", () => {
    expect(new Keepalive(policy, () => 0, 0).wakeAtMs).toBeCloseTo(18_000);
    expect(new Keepalive(policy, () => 1, 0).wakeAtMs).toBeCloseTo(22_000);
  });

  it("is pinged by the protocol alone in that mode, and by both in the other", () => {
    const protocol = keepalive({ mode: "protocol" });
    const wake = onTime(protocol);
    expect(wake.send).toEqual(["protocol"]);
    expect(protocol.received({ kind: "pong" }, wake.atMs + 3)).toEqual({ swallow: false, rttMs: 3 });
    expect(protocol.wakeAtMs).toBe(wake.atMs + 3 + 20_000);
    const both = keepalive({ mode: "both" });
    onTime(both);
    both.received(PONG, 20_010);
    expect(onTime(both).send).toEqual(["text", "protocol"]);
  });
});

describe("a connection that is busy", () => {
  it("is not pinged (W19)", () => {
    const subject = keepalive();
    for (let nowMs = 0; nowMs < 100_000; nowMs += 10_000) {
      subject.received(DATA, nowMs);
      expect(subject.wake(nowMs + 9_999, nowMs + 9_999, nowMs).send).toEqual([]);
    }
  });

  it("gets the response text when no ping is under way (W20)", () => {
    const { subject, nowMs } = proven();
    expect(subject.received(PONG, nowMs + 1)).toEqual({ swallow: false, rttMs: undefined });
    expect(subject.received({ kind: "text", text: "pong " }, nowMs + 2).swallow).toBe(false);
  });

  it("is alive by anything that arrives, and the answer that comes late is swallowed all the same", () => {
    const { subject } = proven();
    const { atMs } = onTime(subject);
    subject.received(DATA, atMs + 4_000);
    expect(onTime(subject)).toMatchObject({ dead: false, send: [] });
    expect(subject.received(PONG, atMs + 9_000).swallow).toBe(true);
    expect(subject.received(PONG, atMs + 9_001).swallow).toBe(false);
  });

  it("is alive while a large message is still arriving", () => {
    const { subject } = proven();
    onTime(subject, 1_000);
    expect(onTime(subject, 2_000).dead).toBe(false);
  });
});

describe("a peer that is gone", () => {
  it("is dead after interval and timeout (W21)", () => {
    const subject = keepalive();
    onTime(subject);
    expect(onTime(subject)).toMatchObject({ dead: true, atMs: 25_000 });
  });

  it("is dead in a later cycle too", () => {
    const { subject } = proven();
    onTime(subject, 50);
    expect(onTime(subject, 50).dead).toBe(true);
  });
});

describe("a cell without the pair", () => {
  it("keeps its connection by protocol pings, and is reported once (W22)", () => {
    const subject = keepalive();
    const { atMs } = onTime(subject);
    expect(subject.received({ kind: "pong" }, atMs + 5).rttMs).toBe(5);
    expect(onTime(subject)).toMatchObject({ dead: false, misconfigured: true });
    const next = onTime(subject);
    expect(next).toMatchObject({ send: ["protocol"], misconfigured: false });
    expect(subject.received(PONG, next.atMs + 1).swallow).toBe(false);
    subject.received({ kind: "pong" }, next.atMs + 2);
    expect(onTime(subject)).toMatchObject({ send: ["protocol"], misconfigured: false });
    expect(onTime(subject).dead).toBe(true);
  });

  it("is found out even when traffic hid the first judgement", () => {
    const { subject } = proven();
    const first = onTime(subject);
    subject.received(DATA, first.atMs + 1);
    onTime(subject);
    const second = onTime(subject);
    expect(second.send).toEqual(["protocol"]);
    subject.received({ kind: "pong" }, second.atMs + 1);
    expect(onTime(subject).misconfigured).toBe(true);
  });

  it("is not suspected when the text answer comes after the protocol's", () => {
    const subject = keepalive();
    const { atMs } = onTime(subject);
    subject.received({ kind: "pong" }, atMs + 1);
    expect(subject.received(PONG, atMs + 2)).toEqual({ swallow: true, rttMs: undefined });
    expect(onTime(subject)).toMatchObject({ misconfigured: false, send: ["text"] });
  });
});

describe("a loop that stalled", () => {
  it("gives the peer a fresh ping when the timer is later than the interval (W23)", () => {
    const { subject } = proven();
    onTime(subject);
    const dueMs = subject.wakeAtMs;
    const wake = subject.wake(dueMs + 30_000, dueMs, 0);
    expect(wake).toMatchObject({ dead: false, send: ["protocol"] });
    expect(onTime(subject).dead).toBe(true);
  });

  it("gives the loop one chance to read what waits when the timer is a little late", () => {
    const { subject } = proven();
    onTime(subject);
    const dueMs = subject.wakeAtMs;
    expect(subject.wake(dueMs + 2_000, dueMs, 0)).toMatchObject({
      dead: false,
      send: [],
      wakeAtMs: dueMs + 4_000,
    });
    expect(subject.wake(dueMs + 6_000, dueMs + 4_000, 0).dead).toBe(true);
  });

  it("does nothing when woken early", () => {
    const subject = keepalive();
    expect(subject.wake(10, 10, 0)).toMatchObject({ send: [], dead: false, wakeAtMs: 20_000 });
  });
});

describe("a consumer that paused", () => {
  it("suspends judgement, and the time starts afresh (W24)", () => {
    const { subject } = proven();
    const { atMs } = onTime(subject);
    subject.pause();
    expect(subject.wakeAtMs).toBe(Number.POSITIVE_INFINITY);
    expect(subject.wake(atMs + 60_000, atMs + 5_000, 0)).toMatchObject({ dead: false, send: [] });
    subject.resume(atMs + 60_000);
    expect(subject.wakeAtMs).toBe(atMs + 80_000);
    expect(subject.received(PONG, atMs + 60_001).swallow).toBe(true);
  });

  it("may resume without having paused", () => {
    const subject = keepalive();
    subject.resume(5_000);
    expect(subject.wakeAtMs).toBe(20_000);
  });
});
