import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, inject, test, vi } from "vitest";
import { ReplayCache } from "../../src/core/replay-cache.ts";
import type { RequestToSign } from "../../src/core/sign.ts";
import { RequestVerifier } from "../../src/core/verifier.ts";
import { fleetKey, nonceOf, nowMs, self, signedRequest } from "../support/signed.ts";

const isLong = inject("size") === "long";
const retentionMs = 60_000;
const nonce = (number: number) => createHash("sha256").update(String(number)).digest("hex").slice(0, 32);

test("a nonce is remembered for the whole retention, and not longer", () => {
  const cache = new ReplayCache(10, retentionMs);
  cache.add(nonce(1), 1_000, 1_000);
  expect(cache.check(nonce(1), 61_000)).toBe("seen");
  expect(cache.check(nonce(1), 61_001)).toBe("fresh");
  expect(cache.count).toBe(0);
});

test("what is forgotten raises the floor to its stamp", () => {
  const cache = new ReplayCache(10, retentionMs);
  cache.add(nonce(1), 1_000, 5_000);
  cache.add(nonce(2), 1_000, 3_000);
  expect(cache.floorMs).toBe(Number.NEGATIVE_INFINITY);
  cache.check(nonce(3), 61_001);
  expect(cache.floorMs).toBe(5_000);
});

test("a clock that goes back forgets nothing", () => {
  const cache = new ReplayCache(10, retentionMs);
  cache.add(nonce(1), 100_000, 100_000);
  cache.add(nonce(2), 50_000, 50_000);
  expect(cache.check(nonce(1), 0)).toBe("seen");
  expect(cache.check(nonce(2), 120_000)).toBe("seen");
});

test("a clock that leaps ahead and returns does not leave a full memory full", () => {
  const cache = new ReplayCache(8, retentionMs);
  const add = (number: number, at: number) => {
    const verdict = cache.check(nonce(number), at);
    if (verdict === "fresh") cache.add(nonce(number), at, at);
    return verdict;
  };
  add(1, 3_600_000);
  for (let i = 2; i <= 8; i += 1) add(i, 1_000);
  expect(add(9, 2_000)).toBe("full");
  expect(add(9, 61_000)).toBe("full");
  expect(add(9, 66_000)).toBe("fresh");
  // What the leap brought stays known, and what was forgotten cannot come again.
  expect(cache.check(nonce(1), 66_000)).toBe("seen");
  expect(cache.count).toBe(2);
  expect(cache.floorMs).toBe(1_000);
});

/** How often a memory was copied as a whole while this ran: each copy makes two arrays of times, and nothing else does. */
function wholeCopies(run: () => void): number {
  let arrays = 0;
  class CountedArray extends Float64Array {
    constructor(length: number) {
      super(length);
      arrays += 1;
    }
  }
  vi.stubGlobal("Float64Array", CountedArray);
  try {
    run();
  } finally {
    vi.unstubAllGlobals();
  }
  return arrays / 2;
}

test("the whole memory is looked through rarely, however many requests find it full", () => {
  const size = 20_000;
  const cache = new ReplayCache(size, retentionMs);
  cache.add(nonce(0), 3_600_000, 3_600_000);
  for (let i = 1; i < size; i += 1) cache.add(nonceOf(i), 1_000, 1_000);
  const askedFor = (fromMs: number, count: number) =>
    wholeCopies(() => {
      for (let i = 0; i < count; i += 1) expect(cache.check(nonce(-1), fromMs + i)).toBe("full");
    });
  expect(askedFor(2_000, 1_000)).toBe(1);
  expect(askedFor(3_000, 4_000)).toBe(0);
  expect(askedFor(7_000, 1_000)).toBe(1);
});

test("a memory that grows is copied when it doubles, and at no other time", () => {
  const cache = new ReplayCache(1_000_000, retentionMs);
  const copies = wholeCopies(() => {
    for (let i = 0; i < 40_000; i += 1) cache.add(nonceOf(i), i, i);
  });
  expect(copies).toBe(Math.ceil(Math.log2(40_000 / 1_024)));
});

const operation = fc.record({
  nonce: fc.nat(40).map(nonceOf),
  passedMs: fc.oneof(fc.constant(0), fc.nat(40), fc.nat(200)),
});

test("it answers as a plain map with the same rules does", () => {
  const property = fc.property(
    fc.array(operation, { maxLength: 120 }),
    fc.integer({ min: 1, max: 12 }),
    (list, capacity) => {
      const cache = new ReplayCache(capacity, 100);
      const model = new Map<string, number>();
      let now = 0;
      for (const { nonce: one, passedMs } of list) {
        now += passedMs;
        for (const [old, seen] of model) if (now - seen > 100) model.delete(old);
        const expected = model.has(one) ? "seen" : model.size >= capacity ? "full" : "fresh";
        expect(cache.check(one, now)).toBe(expected);
        if (expected !== "fresh") continue;
        model.set(one, now);
        cache.add(one, now, now);
      }
      expect(cache.count).toBe(model.size);
    },
  );
  fc.assert(property, { numRuns: isLong ? 100_000 : 1_000, seed: inject("seed") });
});

test("growing, wrapping around and expiring, it loses none that it must know", () => {
  const cache = new ReplayCache(1_000_000, 1_000);
  for (let i = 0; i < 30_000; i += 1) {
    const now = i < 15_000 ? Math.floor(i / 4) : i - 11_250;
    expect(cache.check(nonce(i), now)).toBe("fresh");
    cache.add(nonce(i), now, now);
    if (i % 97 === 0) {
      for (const back of [0, 1, 100, 900])
        if (i >= back) expect(cache.check(nonce(i - back), now)).toBe("seen");
    }
  }
});

const total = isLong ? 900_000 : 45_000;

/** The requests of a load of `total` within 59 s, from one number on, and whether each is accepted when it comes. */
function load(from: number, count: number, change: Partial<RequestToSign> = {}) {
  return Array.from({ length: count }, (_, i) => {
    const atMs = nowMs + Math.floor(((from + i) / total) * 59_000);
    return { atMs, request: signedRequest({ nonce: nonce(from + i), timeMs: atMs, ...change }) };
  });
}

/** CPU time that a verifier takes for each of these requests, in microseconds; all must be accepted. */
function costOf(verifier: RequestVerifier, requests: ReturnType<typeof load>): number {
  const before = process.cpuUsage();
  let refused = 0;
  for (const { request, atMs } of requests) if (!verifier.verify(request, atMs).ok) refused += 1;
  const { user, system } = process.cpuUsage(before);
  expect(refused).toBe(0);
  return (user + system) / requests.length;
}

/** A quarter of them are not above it. */
function lowerQuartile(costs: readonly number[]): number {
  return [...costs].sort((a, b) => a - b)[Math.floor(costs.length / 4)] ?? Number.NaN;
}

// What else the machine does changes the cost of everything twofold from one second to the next. So the last tenth of one
// load is measured in the same moments as the first tenth of another, in small slices by turns.
test("within a minute, the last tenth of the nonces costs what the first did, and no replay is accepted", () => {
  const verifierOf = () => new RequestVerifier({ keys: [fleetKey], version: 5, self });
  const [full, empty] = [verifierOf(), verifierOf()];
  const tenth = total / 10;
  const slice = total / 900;
  for (let from = 0; from < total - tenth; from += slice) costOf(full, load(from, slice));
  const last: number[] = [];
  const first: number[] = [];
  for (let from = 0; from < tenth; from += slice) {
    const ofLast = load(total - tenth + from, slice);
    const ofFirst = load(from, slice);
    const isFirstNow = last.length % 2 === 0;
    if (isFirstNow) first.push(costOf(empty, ofFirst));
    last.push(costOf(full, ofLast));
    if (!isFirstNow) first.push(costOf(empty, ofFirst));
  }
  expect(last).toHaveLength(90);
  expect(
    lowerQuartile(last) / lowerQuartile(first),
    `us/request, first tenth ${lowerQuartile(first).toFixed(1)}, last tenth ${lowerQuartile(last).toFixed(1)}`,
  ).toBeLessThanOrEqual(1.5);

  let accepted = 0;
  const replays = isLong ? 100_000 : 5_000;
  for (let i = 0; i < replays; i += 1) {
    const target = i % 2 === 0 ? "/peer/probe" : "/another";
    for (const { request } of load((i * 7_919) % total, 1, { target }))
      if (full.verify(request, nowMs + 59_000).ok) accepted += 1;
  }
  expect(accepted).toBe(0);
});
