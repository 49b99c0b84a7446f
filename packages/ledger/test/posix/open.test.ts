import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it, vi } from "vitest";
import { loadDigest } from "../../src/digest.ts";
import { LedgerClosedError, LedgerMissingError, LedgerOptionError } from "../../src/errors.ts";
import type { PosixLedgerEvent } from "../../src/posix/ledger-event.ts";
import { openPosixLedger } from "../../src/posix/open-posix-ledger.ts";
import { chooses, listAll, openForTest, temporaryDirectory } from "../support/posix-place.ts";
import { ReferenceLedger } from "../support/reference-ledger.ts";

const MINUTE_MS = 60_000;

it("requireExisting creates nothing where no ledger was ever created", async () => {
  const top = await temporaryDirectory();
  const missing = join(top, "missing");
  const opened = openPosixLedger({ directory: missing, requireExisting: true });
  await expect(opened).rejects.toThrow(LedgerMissingError);
  await expect(opened).rejects.toThrow(/no such directory/);
  writeFileSync(join(top, "file"), "");
  const inFile = openPosixLedger({ directory: join(top, "file"), requireExisting: true });
  await expect(inFile).rejects.toThrow(LedgerMissingError);
  mkdirSync(join(top, "empty"));
  const empty = openPosixLedger({ directory: join(top, "empty"), requireExisting: true });
  await expect(empty).rejects.toThrow(/^no ledger was ever created .* no file cellkit.ledger/);
  expect(readdirSync(top).sort()).toEqual(["empty", "file"]);
  expect(readdirSync(join(top, "empty"))).toEqual([]);
});

it("an original's directory is taken over as it is, and marked", async () => {
  const directory = await temporaryDirectory();
  const original = new ReferenceLedger(directory, 10, await loadDigest());
  original.claim("old", "body", () => "http://old:8787");
  await expect(openPosixLedger({ directory, requireExisting: true })).rejects.toMatchObject({
    ...{ code: "CELLKIT_LEDGER_MISSING", hasRecords: true },
    message: expect.stringMatching(/^there are records .*\(a file cellkit.ledger\).*cellkit ledger adopt/),
  });
  const ledger = await openForTest({ directory, capacity: 2 });
  const again = await openForTest({ directory, requireExisting: true, capacity: 2 });
  expect(again.ledgerId).toBe(ledger.ledgerId);
  expect(JSON.parse(readFileSync(join(directory, "cellkit.ledger"), "utf8"))).toEqual({
    format: 1,
    ledgerId: ledger.ledgerId,
  });
  expect((await again.claim("old", "body", chooses())).kind).toBe("existing");
  expect((await again.claim("new", "body", chooses())).kind).toBe("new");
  expect(await again.claim("newer", "body", chooses())).toEqual({ kind: "full" });
  expect(original.claim("new", "body", () => "http://other").kind).toBe("existing");
});

it("a file in its place, and one on the way there, are told as files", async () => {
  const file = join(await temporaryDirectory(), "file");
  writeFileSync(file, "");
  for (const directory of [file, join(file, "below")])
    await expect(openPosixLedger({ directory })).rejects.toMatchObject({
      ...{ code: "CELLKIT_LEDGER_UNAVAILABLE", recorded: "no" },
      message: expect.stringContaining(`${directory} is a file, or lies below one`),
    });
});

it.each(["", "{}", '{"format":2,"ledgerId":"4e1d6c0a-0000-4000-8000-000000000000"}', "x".repeat(2_000)])(
  "a marker of unknown content is refused and stays: %j",
  async (text) => {
    const directory = await temporaryDirectory();
    writeFileSync(join(directory, "cellkit.ledger"), text);
    const refusal = {
      code: "CELLKIT_LEDGER_UNSUPPORTED",
      message: expect.stringContaining("is not the mark of a ledger"),
    };
    await expect(openPosixLedger({ directory })).rejects.toMatchObject(refusal);
    await expect(openPosixLedger({ directory, requireExisting: true })).rejects.toMatchObject(refusal);
    expect(readFileSync(join(directory, "cellkit.ledger"), "utf8")).toBe(text);
  },
);

it("handles that create a ledger at the same time agree on its id", async () => {
  const directory = join(await temporaryDirectory(), "a", "b");
  const ledgers = await Promise.all(Array.from({ length: 8 }, () => openForTest({ directory })));
  expect(new Set(ledgers.map(({ ledgerId }) => ledgerId)).size).toBe(1);
});

it("resolves symbolic links once, at the start", async () => {
  const top = await temporaryDirectory();
  mkdirSync(join(top, "true"));
  symlinkSync("true", join(top, "link"));
  const ledger = await openForTest({ directory: join(top, "link") });
  expect(ledger.url).toBe(pathToFileURL(join(top, "true")).href);
  rmSync(join(top, "link"));
  expect((await ledger.claim("a", "body", chooses())).kind).toBe("new");
});

it("removes what crashes left behind, once it is old, and nothing else", async () => {
  const directory = await temporaryDirectory();
  mkdirSync(join(directory, ".claim-staging"));
  const put = (name: string, ageMs: number) => {
    const path = join(directory, name);
    writeFileSync(path, "");
    utimesSync(path, (Date.now() - ageMs) / 1000, (Date.now() - ageMs) / 1000);
  };
  const day = 24 * 60 * MINUTE_MS;
  put(".claim-staging/old", 11 * MINUTE_MS);
  put(".claim-staging/young", 9 * MINUTE_MS);
  put(".claim-old", 11 * MINUTE_MS);
  put(".tmpOld", day + MINUTE_MS);
  put(".tmpYoung", day - MINUTE_MS);
  put("other", 99 * day);
  put(`${"0".repeat(64)}.json`, 99 * day);
  put(`${"0".repeat(64)}.retired`, 99 * day);
  await openForTest({ directory });
  const names = readdirSync(directory).filter(
    (name) => !["cellkit.count", "cellkit.ledger", "ownership.lock"].includes(name),
  );
  expect(names.sort()).toEqual(
    [".claim-staging", ".tmpYoung", "other", `${"0".repeat(64)}.json`, `${"0".repeat(64)}.retired`].sort(),
  );
  expect(readdirSync(join(directory, ".claim-staging"))).toEqual(["young"]);
});

it.each([
  { lockTimeoutMs: -1 },
  { lockTimeoutMs: Number.NaN },
  { capacity: 0 },
  { name: "Up" },
  { directory: "" },
  { directory: "a\0b" },
])("refuses %j", async (options) => {
  const directory = join(await temporaryDirectory(), "never");
  await expect(openPosixLedger({ directory, ...options })).rejects.toThrow(LedgerOptionError);
  expect(existsSync(directory)).toBe(false);
});

it("a lock file that was replaced is noticed, so that everybody locks the same", async () => {
  const directory = await temporaryDirectory();
  const ledger = await openForTest({ directory });
  await ledger.claim("a", "body", chooses());
  rmSync(join(directory, "ownership.lock"));
  expect((await ledger.claim("b", "body", chooses())).kind).toBe("new");
  const { ino } = statSync(join(directory, "ownership.lock"));
  const original = new ReferenceLedger(directory, 10, await loadDigest());
  await original.locked(async () => undefined);
  expect((await ledger.claim("c", "body", chooses())).kind).toBe("new");
  expect(statSync(join(directory, "ownership.lock")).ino).toBe(ino);
});

it("close waits for what runs, and nothing begins afterwards", async () => {
  const directory = await temporaryDirectory();
  const ledger = await openForTest({ directory, retirable: true });
  const claims = ["a", "b", "c"].map((id) => ledger.claim(id, "body", chooses()));
  const closed = ledger.close();
  expect(ledger.close()).toBe(closed);
  await expect(ledger.claim("d", "body", chooses())).rejects.toThrow(LedgerClosedError);
  await closed;
  for (const claim of claims) expect((await claim).kind).toBe("new");
  expect(readdirSync(join(directory, ".claim-staging"))).toEqual([]);
  await expect(ledger.count()).rejects.toThrow(LedgerClosedError);
  await expect(listAll(ledger)).rejects.toThrow(LedgerClosedError);
  await expect(ledger.sweep({ quarantineMs: 0 })).rejects.toThrow(LedgerClosedError);
});

it("an aborted claim ends at once, wherever it waits, and leaves no staging file", async () => {
  const directory = await temporaryDirectory();
  const ledger = await openForTest({ directory });
  await expect(
    ledger.claim("a", "body", chooses(), { signal: AbortSignal.abort(new RangeError("before")) }),
  ).rejects.toThrow("before");
  const choosing = new AbortController();
  const chosen = ledger.claim("a", "body", () => new Promise(() => undefined), { signal: choosing.signal });
  choosing.abort(new RangeError("while choosing"));
  await expect(chosen).rejects.toThrow("while choosing");
  const waiting = new AbortController();
  const original = new ReferenceLedger(directory, 10, await loadDigest());
  const { promise: held, resolve: free } = Promise.withResolvers<void>();
  const { openSync, closeSync } = await import("node:fs");
  const { tryLock } = await import("@cellkit/bucket/flock");
  const fd = openSync(join(directory, "ownership.lock"), "r+");
  expect(tryLock(fd)).toBe(true);
  const claims = ["b", "c"].map((id) => ledger.claim(id, "body", chooses(), { signal: waiting.signal }));
  expect(() => original.locked(() => undefined)).toThrow("held");
  // What is staged waits for the lock.
  await vi.waitFor(() => expect(readdirSync(join(directory, ".claim-staging"))).toHaveLength(2), 20_000);
  waiting.abort(new RangeError("while waiting"));
  for (const claim of await Promise.allSettled(claims))
    expect(claim).toMatchObject({ reason: { message: "while waiting" } });
  free();
  await held;
  closeSync(fd);
  await ledger.close();
  expect(readdirSync(join(directory, ".claim-staging"))).toEqual([]);
});

it("tells of claims, locks, groups and countings, and survives a listener that throws", async () => {
  const events: PosixLedgerEvent[] = [];
  const ledger = await openForTest({ onEvent: (event) => events.push(event), capacity: 5 });
  await Promise.all(["a", "b", "b"].map((id) => ledger.claim(id, "body", chooses())));
  await ledger.claim("a", "other body", chooses());
  const results = events.flatMap((event) => (event.kind === "claim" ? [event.result] : []));
  expect(results.sort()).toEqual(["conflict", "existing", "new", "new"]);
  const committed = events.flatMap((event) => (event.kind === "commit" ? [event.recordCount] : []));
  expect(committed.reduce((sum, count) => sum + count, 0)).toBe(2);
  expect(events).toContainEqual(
    expect.objectContaining({ kind: "scan", count: 0, capacity: 5, underLock: true }),
  );
  const lock = events.find(({ kind }) => kind === "lock");
  expect(lock).toMatchObject({ taken: true, lockWaitMs: expect.any(Number), holdMs: expect.any(Number) });

  const uncaught = vi.fn();
  const others = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", uncaught);
  try {
    const loud = await openForTest({
      onEvent: ({ kind }) => {
        if (kind === "claim") throw new RangeError("a listener's mistake");
      },
    });
    expect((await loud.claim("a", "body", chooses())).kind).toBe("new");
    await vi.waitFor(() => expect(uncaught).toHaveBeenCalled(), 20_000);
  } finally {
    process.removeAllListeners("uncaughtException");
    for (const listener of others) process.on("uncaughtException", listener);
  }
});
