import { existsSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { loadDigest } from "../../src/digest.ts";
import { chooses, openForTest, temporaryDirectory } from "../support/posix-place.ts";

const { key } = await loadDigest();
const MINUTE_MS = 60_000;
const QUARANTINE = { quarantineMs: 10 * MINUTE_MS };

/** A ledger with a clock that a test sets, ahead of the true one. */
async function openWithClock() {
  const directory = await temporaryDirectory();
  const clock = { aheadMs: 0 };
  const ledger = await openForTest({ directory, retirable: true, now: () => Date.now() + clock.aheadMs });
  const record = (id: string) => join(directory, `${key(id)}.json`);
  const mark = (id: string) => join(directory, `${key(id)}.retired`);
  return { ledger, clock, record, mark };
}

it("a young record is marked with an empty file, still has its owner, and counts", async () => {
  const { ledger, record, mark } = await openWithClock();
  const claim = await ledger.claim("a", "body", chooses());
  expect(await ledger.retire("a", QUARANTINE)).toBe(false);
  expect(statSync(mark("a"))).toMatchObject({ size: 0 });
  expect(statSync(mark("a")).mode & 0o777).toBe(0o600);
  expect(await ledger.retire("a", QUARANTINE)).toBe(false);
  expect(await ledger.sweep(QUARANTINE)).toBe(0);
  expect(existsSync(record("a"))).toBe(true);
  expect(await ledger.claim("a", "body", chooses("http://other"))).toEqual({ ...claim, kind: "existing" });
  expect(await ledger.count()).toBe(1);
});

it("an old record goes with its mark, by its file's time", async () => {
  const { ledger, record, mark } = await openWithClock();
  for (const id of ["retired", "swept", "unmarked"]) await ledger.claim(id, "body", chooses());
  await ledger.retire("retired", QUARANTINE);
  await ledger.retire("swept", QUARANTINE);
  const old = (Date.now() - 11 * MINUTE_MS) / 1000;
  for (const id of ["retired", "swept", "unmarked"]) utimesSync(record(id), old, old);
  expect(await ledger.retire("retired", QUARANTINE)).toBe(true);
  expect(await ledger.retire("retired", QUARANTINE)).toBe(false);
  expect(await ledger.sweep(QUARANTINE)).toBe(1);
  expect([record("retired"), mark("retired"), record("swept"), mark("swept")].map(existsSync)).toEqual([
    false,
    false,
    false,
    false,
  ]);
  // Unmarked records are never swept, however old.
  expect(await ledger.lookup("unmarked")).toBeDefined();
  expect((await ledger.claim("retired", "other body", chooses())).kind).toBe("new");
});

it("a mark without a record is swept and not counted", async () => {
  const { ledger, mark } = await openWithClock();
  writeFileSync(mark("gone"), "");
  expect(await ledger.sweep(QUARANTINE)).toBe(0);
  expect(existsSync(mark("gone"))).toBe(false);
});

it("a new record does not take over the mark that a crash left behind", async () => {
  const { ledger, clock, mark } = await openWithClock();
  writeFileSync(mark("a"), "");
  expect((await ledger.claim("a", "body", chooses())).kind).toBe("new");
  expect(existsSync(mark("a"))).toBe(false);
  clock.aheadMs = 11 * MINUTE_MS;
  expect(await ledger.sweep(QUARANTINE)).toBe(0);
  expect(await ledger.lookup("a")).toBeDefined();
  // A known id's mark stays.
  clock.aheadMs = 0;
  await ledger.retire("a", QUARANTINE);
  expect((await ledger.claim("a", "body", chooses())).kind).toBe("existing");
  expect(existsSync(mark("a"))).toBe(true);
});

it("a clock that is set back keeps every record; one that jumps ahead ends the quarantine", async () => {
  const { ledger, clock } = await openWithClock();
  await ledger.claim("a", "body", chooses());
  await ledger.claim("b", "body", chooses());
  clock.aheadMs = -365 * 24 * 60 * MINUTE_MS;
  expect(await ledger.retire("a", QUARANTINE)).toBe(false);
  expect(await ledger.sweep({ quarantineMs: 0 })).toBe(0);
  clock.aheadMs = 9 * MINUTE_MS;
  expect(await ledger.retire("a", QUARANTINE)).toBe(false);
  clock.aheadMs = 11 * MINUTE_MS;
  expect(await ledger.sweep(QUARANTINE)).toBe(1);
  expect(await ledger.retire("b", QUARANTINE)).toBe(true);
  expect(await ledger.count()).toBe(0);
});

it("sweeps more than one hold of the lock takes, and lets claims in between", async () => {
  const { ledger, clock } = await openWithClock();
  const ids = Array.from({ length: 150 }, (_, index) => `id-${index}`);
  await Promise.all(ids.map((id) => ledger.claim(id, "body", chooses())));
  await Promise.all(ids.map((id) => ledger.retire(id, QUARANTINE)));
  clock.aheadMs = 11 * MINUTE_MS;
  const [swept, claim] = await Promise.all([
    ledger.sweep(QUARANTINE),
    ledger.claim("new", "body", chooses()),
  ]);
  expect({ swept, kind: claim.kind, count: await ledger.count() }).toEqual({
    swept: 150,
    kind: "new",
    count: 1,
  });
});

it("a sweep leaves alone what lost its mark after the sweep began", async () => {
  const { ledger, clock, mark, record } = await openWithClock();
  const ids = Array.from({ length: 70 }, (_, index) => `id-${index}`);
  await Promise.all(ids.map((id) => ledger.claim(id, "body", chooses())));
  await Promise.all(ids.map((id) => ledger.retire(id, QUARANTINE)));
  clock.aheadMs = 11 * MINUTE_MS;
  const swept = ledger.sweep(QUARANTINE);
  // The marks are listed by now; the first hold of the lock is still to come.
  await new Promise((done) => setImmediate(done));
  const left = ids.filter((id) => existsSync(mark(id)));
  for (const id of left) rmSync(mark(id));
  const sweptCount = await swept;
  expect(sweptCount).toBe(ids.length - ids.filter((id) => existsSync(record(id))).length);
  expect(ids.filter((id) => existsSync(record(id)))).toEqual(left);
});

it("a capacity that was full has room again after a sweep", async () => {
  const directory = await temporaryDirectory();
  let aheadMs = 0;
  const ledger = await openForTest({
    directory,
    capacity: 2,
    retirable: true,
    now: () => Date.now() + aheadMs,
  });
  await ledger.claim("a", "body", chooses());
  await ledger.claim("b", "body", chooses());
  await ledger.retire("a", QUARANTINE);
  expect(await ledger.claim("c", "body", chooses())).toEqual({ kind: "full" });
  aheadMs = 11 * MINUTE_MS;
  expect(await ledger.sweep(QUARANTINE)).toBe(1);
  expect((await ledger.claim("c", "body", chooses())).kind).toBe("new");
  expect(await ledger.claim("d", "body", chooses())).toEqual({ kind: "full" });
});
