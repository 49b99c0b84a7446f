import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, inject, test } from "vitest";
import { ReplayCache } from "../../src/core/replay-cache.ts";
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

test("the whole memory is looked through rarely, however many requests find it full", () => {
  const cache = new ReplayCache(200_000, retentionMs);
  cache.add(nonce(0), 3_600_000, 3_600_000);
  for (let i = 1; i < 200_000; i += 1) cache.add(nonceOf(i), 1_000, 1_000);
  const before = process.cpuUsage();
  for (let i = 0; i < 1_000; i += 1) expect(cache.check(nonce(-1), 2_000 + i)).toBe("full");
  const { user } = process.cpuUsage(before);
  expect(user).toBeLessThan(2_000_000);
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

/** Median CPU cost of a request in each tenth of the load; a slice holds a hundredth of it. */
function costsOfTenths(verifier: RequestVerifier, total: number): number[] {
  const costs: number[] = [];
  const slice = total / 100;
  for (let from = 0; from < total; from += slice) {
    const requests = Array.from({ length: slice }, (_, i) => {
      const number = from + i;
      return signedRequest({ nonce: nonce(number), timeMs: nowMs + Math.floor((number / total) * 59_000) });
    });
    const before = process.cpuUsage();
    let refused = 0;
    for (const [i, request] of requests.entries()) {
      if (!verifier.verify(request, nowMs + Math.floor(((from + i) / total) * 59_000)).ok) refused += 1;
    }
    const { user, system } = process.cpuUsage(before);
    expect(refused).toBe(0);
    costs.push((user + system) / slice);
  }
  return Array.from({ length: 10 }, (_, tenth) => {
    const ten = costs.slice(tenth * 10, tenth * 10 + 10).sort((a, b) => a - b);
    return ((ten[4] ?? 0) + (ten[5] ?? 0)) / 2;
  });
}

test("within a minute, the last tenth of the nonces costs what the first did, and no replay is accepted", () => {
  const total = isLong ? 900_000 : 45_000;
  const replays = isLong ? 100_000 : 5_000;
  const verifier = new RequestVerifier({ keys: [fleetKey], version: 5, self });
  // Compiles the code, so that the first tenth is not the slow one.
  const warm = new RequestVerifier({ keys: [fleetKey], version: 5, self });
  costsOfTenths(warm, isLong ? 50_000 : 10_000);

  const costs = costsOfTenths(verifier, total);
  const [first = 0, last = Number.POSITIVE_INFINITY] = [costs[0], costs[9]];
  expect(
    last / first,
    `us/request by tenth: ${costs.map((cost) => cost.toFixed(1)).join(" ")}`,
  ).toBeLessThanOrEqual(1.5);

  let accepted = 0;
  for (let i = 0; i < replays; i += 1) {
    const number = (i * 7_919) % total;
    const replay = signedRequest({
      nonce: nonce(number),
      timeMs: nowMs + Math.floor((number / total) * 59_000),
      target: i % 2 === 0 ? "/peer/probe" : "/another",
    });
    if (verifier.verify(replay, nowMs + 59_000).ok) accepted += 1;
  }
  expect(accepted).toBe(0);
});
