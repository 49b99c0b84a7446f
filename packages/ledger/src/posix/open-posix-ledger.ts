/** Opens a ledger in a directory that replicas share; originals may use the same directory at the same time. */
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { DEFAULT_LEDGER_NAME, resolveLedgerOptions } from "../core/ledger-options.ts";
import { loadDigest } from "../digest.ts";
import { LedgerMissingError, LedgerOptionError } from "../errors.ts";
import type { LedgerOptions, StoredLedger } from "../ledger.ts";
import { CountHint } from "./count-hint.ts";
import { diskFailure, errnoOf, quietly } from "./disk-failure.ts";
import { type FileCalls, immediateCalls, pooledCalls } from "./file-calls.ts";
import { isLocal } from "./file-systems.ts";
import { GroupCommit } from "./group-commit.ts";
import { LedgerDirectory, MARKER_NAME } from "./ledger-directory.ts";
import { guardListener, type PosixLedgerListener } from "./ledger-event.ts";
import { LedgerLock } from "./ledger-lock.ts";
import { holdsRecord } from "./listing.ts";
import { ensureMarker, readMarker } from "./marker.ts";
import { PosixLedger } from "./posix-ledger.ts";
import { prepareDirectory } from "./prepare-directory.ts";
import { RecordCount } from "./record-count.ts";
import { RecordFiles } from "./record-files.ts";
import { Retirement } from "./retirement.ts";
import { maybeStaging, Staging } from "./staging.ts";

/** What {@link openPosixLedger} takes. */
export interface PosixLedgerOptions extends LedgerOptions {
  /** Where the ledger named `executions` lies; others are its subdirectories. All replicas must run as the same user. */
  directory: string;
  /** How long a call waits for other processes that hold the lock before it fails with LedgerBusyError. @default 2_000 */
  lockTimeoutMs?: number | undefined;
  /**
   * Whether every machine sees the directory's time change as soon as another one changes the directory, as `cellkit
   * qualify ledger` shows. Then the records need not be counted for each group of claims. It matters for network file
   * systems only: local ones are trusted always. @default false
   */
  trustDirectoryTimes?: boolean | undefined;
  /** Hears of claims, lock times, countings and corrupt records; for metrics. */
  onEvent?: PosixLedgerListener | undefined;
}

const DEFAULT_CAPACITY_COUNT = 100_000;
const DEFAULT_LOCK_TIMEOUT_MS = 2_000;

/**
 * Opens the ledger, and creates it if it is missing and may be. It needs flock(2), hard links, and fsync of files and
 * directories; it cannot see whether these are real: `cellkit qualify ledger` tries.
 * @throws LedgerOptionError (CELLKIT_LEDGER_OPTION), LedgerMissingError (CELLKIT_LEDGER_MISSING),
 *   LedgerUnsupportedError (CELLKIT_LEDGER_UNSUPPORTED) where the lock does not exclude or directories are not durable,
 *   LedgerBusyError (CELLKIT_LEDGER_BUSY), LedgerUnavailableError (CELLKIT_LEDGER_UNAVAILABLE)
 */
export function openPosixLedger(options: PosixLedgerOptions): Promise<StoredLedger> {
  return openWithCalls(options, {});
}

/** As {@link openPosixLedger}; `calls` and `local` stand in for the system's answers, in tests. */
export async function openWithCalls(
  options: PosixLedgerOptions,
  system: { calls?: FileCalls; local?: boolean },
): Promise<StoredLedger> {
  const { name, retirable, requireExisting, now, ...resolved } = resolveLedgerOptions(options, {
    capacity: DEFAULT_CAPACITY_COUNT,
    now: Date.now,
  });
  const { capacity = DEFAULT_CAPACITY_COUNT } = resolved;
  const { lockTimeoutMs = DEFAULT_LOCK_TIMEOUT_MS } = options;
  if (!(Number.isFinite(lockTimeoutMs) && lockTimeoutMs >= 0))
    throw new LedgerOptionError(`lockTimeoutMs must be a number of 0 or more, not ${lockTimeoutMs}`);
  if (typeof options.directory !== "string" || options.directory === "" || options.directory.includes("\0"))
    throw new LedgerOptionError("a ledger's directory is a path, neither empty nor with NUL bytes");
  const top = resolve(options.directory);
  const wanted = name === DEFAULT_LEDGER_NAME ? top : join(top, name);
  const emit = guardListener(options.onEvent);

  if (requireExisting) await checkExisting(wanted);
  const url = pathToFileURL(wanted).href;
  // What may hang here hangs at the start only, and does not stop the event loop.
  const path = await prepareDirectory(wanted, url, system.calls ?? pooledCalls);
  const local =
    system.local ??
    (await isLocal(path).catch((error: unknown) => {
      throw diskFailure(url, "ask for its file system", error, "no");
    }));
  const calls = system.calls ?? (local ? immediateCalls : pooledCalls);
  const directory = await LedgerDirectory.open(path, calls).catch((error: unknown) => {
    throw diskFailure(url, "open its directory", error, "no");
  });
  const lock = new LedgerLock(directory, lockTimeoutMs, emit);
  const trusted = local || options.trustDirectoryTimes === true;
  const hint = new CountHint(directory);
  try {
    const files = new RecordFiles(directory, emit);
    const staging = new Staging(directory);
    const count = new RecordCount(directory, { capacity, trusted, hint, emit });
    if (trusted) await hint.open();
    const ledgerId = await begin(directory, { lock, staging, count, nowMs: now() });
    const commit = new GroupCommit({
      ...{ directory, lock, staging, files, count, emit },
      ...{ lockTimeoutMs, retirable },
    });
    const retirement = new Retirement({ directory, lock, files, count, now });
    const digest = await loadDigest();
    return new PosixLedger({
      ...{ name, ledgerId, capacity, retirable, digest },
      ...{ directory, lock, files, count, commit, retirement, emit },
    });
  } catch (error) {
    await lock.close();
    await hint.close();
    await quietly(directory.close());
    throw diskFailure(url, "start in its directory", error, "no");
  }
}

/** Proves the lock, marks the directory as a ledger's, and removes what crashes left behind. Answers the ledger's id. */
async function begin(
  directory: LedgerDirectory,
  parts: { lock: LedgerLock; staging: Staging; count: RecordCount; nowMs: number },
): Promise<string> {
  const { lock, staging, count, nowMs } = parts;
  await staging.prepare();
  const ledgerId = await lock.hold(
    async () => {
      await lock.checkExclusion();
      return ensureMarker(directory, staging);
    },
    { sinceMs: performance.now() },
  );
  directory.expectLedger(ledgerId);
  // The folder and the lock file are new entries, too.
  await directory.sync();
  const names: string[] = [];
  await count.countAtStart((name) => {
    if (maybeStaging(name)) names.push(name);
  });
  const stale = await staging.findStale(names, nowMs);
  if (stale.length === 0) return ledgerId;
  await lock.hold(
    async () => {
      count.beginChange(await directory.check());
      // Another replica may start at the same time and remove the same.
      for (const path of stale) await staging.discard(path);
      await count.endChange(0, await directory.check());
    },
    { sinceMs: performance.now() },
  );
  return ledgerId;
}

/** @throws LedgerMissingError where no ledger was ever created */
async function checkExisting(path: string): Promise<void> {
  const url = pathToFileURL(path).href;
  const markerPath = join(path, MARKER_NAME);
  let ledgerId: string | undefined;
  try {
    ledgerId = await readMarker({ url, markerPath, calls: pooledCalls });
  } catch (error) {
    if (errnoOf(error) === "ENOTDIR") throw new LedgerMissingError(path, "it is no directory");
    throw diskFailure(url, `read ${markerPath}`, error, "no");
  }
  if (ledgerId !== undefined) return;
  const there = await pooledCalls.lstat(path).catch(() => undefined);
  if (there === undefined) throw new LedgerMissingError(path, "there is no such directory");
  const hasRecords = await holdsRecord(path, pooledCalls).catch((error: unknown) => {
    throw diskFailure(url, "look into its directory", error, "no");
  });
  throw new LedgerMissingError(path, hasRecords ? `a file ${MARKER_NAME}` : `it has no file ${MARKER_NAME}`, {
    hasRecords,
  });
}
