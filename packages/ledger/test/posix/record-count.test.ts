import { linkSync, mkdirSync, readdirSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { loadDigest } from "../../src/digest.ts";
import { type FileCalls, immediateCalls } from "../../src/posix/file-calls.ts";
import type { PosixLedgerEvent } from "../../src/posix/ledger-event.ts";
import { openWithCalls } from "../../src/posix/open-posix-ledger.ts";
import { chooses, PATIENT_LOCK_MS, temporaryDirectory } from "../support/posix-place.ts";
import { ReferenceLedger } from "../support/reference-ledger.ts";

/** Records of others, without their fsyncs. */
function fill(directory: string, from: number, to: number): void {
  mkdirSync(directory, { recursive: true });
  const first = join(directory, "first");
  writeFileSync(first, "{}");
  for (let index = from; index < to; index += 1)
    linkSync(first, join(directory, `${index.toString(16).padStart(64, "0")}.json`));
}

/** The same, seen by the directory's time: in a later tick of the kernel's clock than all that was before. */
function fillLater(directory: string, from: number, to: number): void {
  const timeNs = () => statSync(directory, { bigint: true }).mtimeNs;
  const beforeNs = timeNs();
  fill(directory, from, to);
  const scratch = join(directory, "scratch");
  while (timeNs() === beforeNs) {
    writeFileSync(scratch, "");
    unlinkSync(scratch);
  }
}

/** A ledger that tells of its countings under the lock. */
async function open(
  options: { directory: string; capacity: number; trustDirectoryTimes?: boolean },
  system: { calls?: FileCalls; local: boolean },
) {
  const scans: Extract<PosixLedgerEvent, { kind: "scan" }>[] = [];
  const onEvent = (event: PosixLedgerEvent) => {
    if (event.kind === "scan") scans.push(event);
  };
  const ledger = await openWithCalls({ ...options, lockTimeoutMs: PATIENT_LOCK_MS, onEvent }, system);
  onTestFinished(() => ledger.close());
  return { ledger, scans, locked: () => scans.filter(({ underLock }) => underLock).length };
}

/** Calls whose directory's time never changes, as behind a cache of attributes. */
const staleCalls = (directory: string): FileCalls => ({
  ...immediateCalls,
  lstat: async (path) => {
    const status = await immediateCalls.lstat(path);
    return status === undefined || path !== directory
      ? status
      : Object.assign(status, { mtimeNs: 1n, mtimeMs: 0n });
  },
});

const newId = (count: number) => `new-${count}`;

it("below the capacity less a margin no claim counts the records", async () => {
  const directory = await temporaryDirectory();
  fill(directory, 0, 3_000);
  const { ledger, scans, locked } = await open({ directory, capacity: 5_000 }, { local: true });
  const startedMs = performance.now();
  for (let count = 0; count < 50; count += 1)
    expect((await ledger.claim(newId(count), "body", chooses())).kind).toBe("new");
  expect(locked()).toBe(0);
  // At the start, with the first claim, and in the background once in each further second.
  expect(scans.length).toBeLessThanOrEqual(3 + (performance.now() - startedMs) / 900);
});

it("within the margin it counts under the lock, so that the capacity is exact", async () => {
  const directory = await temporaryDirectory();
  fill(directory, 0, 1_990);
  const { ledger, locked } = await open({ directory, capacity: 2_000 }, { local: true });
  let chosen = 0;
  const choose = async () => {
    chosen += 1;
    return "http://a";
  };
  const claims = await Promise.all(
    Array.from({ length: 30 }, (_, count) => ledger.claim(newId(count), "body", choose)),
  );
  expect(claims.filter(({ kind }) => kind === "new")).toHaveLength(10);
  expect(claims.filter(({ kind }) => kind === "full")).toHaveLength(20);
  expect(locked()).toBeGreaterThan(0);
  // From now on nobody is asked, and known ids keep working.
  chosen = 0;
  expect(await ledger.claim("one more", "body", choose)).toEqual({ kind: "full" });
  expect(chosen).toBe(0);
  const known = claims.findIndex(({ kind }) => kind === "new");
  expect((await ledger.claim(newId(known), "body", choose)).kind).toBe("existing");
  expect(await ledger.count()).toBe(2_000);
});

it("a full ledger refuses without counting again and again", async () => {
  const directory = await temporaryDirectory();
  fill(directory, 0, 100);
  const { ledger, scans } = await open({ directory, capacity: 100 }, { local: true });
  await vi.waitFor(async () => {
    const before = scans.length;
    expect(await ledger.claim("a", "body", chooses())).toEqual({ kind: "full" });
    expect(scans.length).toBe(before);
  }, 30_000);
});

it("records of originals are seen by the directory's time", async () => {
  const directory = await temporaryDirectory();
  fill(directory, 0, 900);
  // With the first claim the margin is used up.
  const { ledger, locked } = await open({ directory, capacity: 1_902 }, { local: true });
  expect((await ledger.claim("mine", "body", chooses())).kind).toBe("new");
  expect(locked()).toBe(0);
  fillLater(directory, 900, 1_901);
  expect(await ledger.claim("too many", "body", chooses())).toEqual({ kind: "full" });
});

it("replicas of ours tell each other how many there are, so that neither counts when the other claimed", async () => {
  const directory = await temporaryDirectory();
  fill(directory, 0, 1_900);
  const capacity = 3_000;
  const one = await open({ directory, capacity }, { local: true });
  const other = await open({ directory, capacity }, { local: true });
  for (let count = 0; count < 40; count += 1) {
    const { ledger } = count % 2 === 0 ? one : other;
    expect((await ledger.claim(newId(count), "body", chooses())).kind).toBe("new");
  }
  expect(one.locked() + other.locked()).toBe(0);
  const many = Array.from({ length: 1_200 }, (_, count) => `many-${count}`);
  const claims = await Promise.all(
    many.map((id, index) => (index % 2 === 0 ? one : other).ledger.claim(id, "body", chooses())),
  );
  expect(claims.filter(({ kind }) => kind === "new")).toHaveLength(capacity - 1_900 - 40);
});

it.each([
  ["nothing", ""],
  ["garbage", "garbage\n"],
  ["a count without its time", "5\n"],
  ["a count of another time", "5 1\n"],
])("what replicas tell each other may be %s: the capacity holds", async (_, hint) => {
  const directory = await temporaryDirectory();
  // With the first claim the margin is used up, so that an unseen change is one too many.
  const { ledger } = await open({ directory, capacity: 1_002 }, { local: true });
  await ledger.claim("first", "body", chooses());
  fillLater(directory, 0, 1_000);
  writeFileSync(join(directory, "cellkit.count"), hint);
  const claims = [await ledger.claim("a", "body", chooses()), await ledger.claim("b", "body", chooses())];
  expect(claims.map(({ kind }) => kind)).toEqual(["new", "full"]);
});

it("a stale time of the directory deceives nobody where times are not trusted", async () => {
  const directory = await temporaryDirectory();
  const capacity = 1_500;
  fill(directory, 0, 400);
  const { ledger, locked } = await open(
    { directory, capacity },
    { calls: staleCalls(directory), local: false },
  );
  expect((await ledger.claim("one", "body", chooses())).kind).toBe("new");
  expect(locked()).toBe(1);
  const original = new ReferenceLedger(directory, capacity, await loadDigest());
  for (let index = 400; index < capacity - 2; index += 1)
    linkSync(join(directory, "first"), join(directory, `${index.toString(16).padStart(64, "0")}.json`));
  expect(original.claim("two", "body", () => "http://original").kind).toBe("new");
  expect(await ledger.claim("three", "body", chooses())).toEqual({ kind: "full" });
  expect(readdirSync(directory).filter((name) => name.endsWith(".json"))).toHaveLength(capacity);
});

it("where qualification showed coherent times, an option spares the counting", async () => {
  const directory = await temporaryDirectory();
  const options = { directory, capacity: 1_500, trustDirectoryTimes: true };
  const { ledger, locked } = await open(options, { local: false });
  for (let count = 0; count < 5; count += 1) await ledger.claim(newId(count), "body", chooses());
  expect(locked()).toBe(0);
});

it("a record of an original within the same tick as ours is found by the counting in the background", async () => {
  const directory = await temporaryDirectory();
  // The worst tick: one that never ends. The margin is what others may add before the next counting.
  const { ledger, scans } = await open(
    { directory, capacity: 3_000 },
    { calls: staleCalls(directory), local: true },
  );
  await ledger.claim("first", "body", chooses());
  fill(directory, 0, 2_500);
  await vi.waitFor(
    async () => {
      await ledger.claim(`again ${scans.length} ${performance.now()}`, "body", chooses());
      expect(scans.some(({ count, underLock }) => !underLock && count > 2_500)).toBe(true);
    },
    { timeout: 30_000, interval: 50 },
  );
  const claims = await Promise.all(
    Array.from({ length: 600 }, (_, count) => ledger.claim(newId(count), "body", chooses())),
  );
  expect(claims.some(({ kind }) => kind === "full")).toBe(true);
  expect(await ledger.count()).toBe(3_000);
});
