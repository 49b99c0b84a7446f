/**
 * The lock of a ledger: flock(2) on `ownership.lock`, as the original takes it. Within this process its holders stand in one
 * line, so that a process never contends with itself; other processes are waited for, for a bounded time.
 */
import { constants } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { tryLock, unlock } from "@cellkit/bucket/flock";
import { LedgerBusyError, LedgerUnsupportedError } from "../errors.ts";
import { diskFailure, errnoOf, quietly } from "./disk-failure.ts";
import type { LedgerDirectory } from "./ledger-directory.ts";
import type { PosixLedgerListener } from "./ledger-event.ts";

/** The first wait for another process; each further one is twice as long. */
const FIRST_WAIT_MS = 1;
/** The longest wait between two tries. */
const LONGEST_WAIT_MS = 20;

/** How long, and until when, to wait for the lock. */
export interface LockPatience {
  /** When the caller began to wait, by `performance.now()`. */
  sinceMs: number;
  signal?: AbortSignal | undefined;
}

/** The lock of one open ledger. */
export class LedgerLock {
  readonly #directory: LedgerDirectory;
  readonly #timeoutMs: number;
  readonly #emit: PosixLedgerListener;
  /** Kept open between holds, which saves two system calls each. */
  #fd: number | undefined;
  #everHeld = false;
  /** When it was last given back here, by `performance.now()`. */
  #freedMs = Number.NEGATIVE_INFINITY;
  #line: Promise<void> = Promise.resolve();

  constructor(directory: LedgerDirectory, timeoutMs: number, emit: PosixLedgerListener) {
    this.#directory = directory;
    this.#timeoutMs = timeoutMs;
    this.#emit = emit;
  }

  /**
   * Does something while nobody else holds the lock. It must be short: originals refuse their callers meanwhile.
   * @throws LedgerBusyError when the lock was not had in time; LedgerUnavailableError when it cannot be taken at all
   */
  async hold<T>(section: () => Promise<T>, patience: LockPatience): Promise<T> {
    const before = this.#line;
    const done = Promise.withResolvers<void>();
    this.#line = done.promise;
    await before;
    try {
      const fd = await this.#take(patience);
      const takenMs = performance.now();
      try {
        return await section();
      } finally {
        await this.#release(fd);
        const holdMs = performance.now() - takenMs;
        this.#emit({ kind: "lock", taken: true, lockWaitMs: takenMs - patience.sinceMs, holdMs });
      }
    } finally {
      done.resolve();
    }
  }

  /**
   * Shows that the lock excludes: while it is held, a second open of the same file must not get it.
   * @throws LedgerUnsupportedError where flock answers yes to everybody
   */
  async checkExclusion(): Promise<void> {
    const second = await this.#open();
    try {
      if (tryLock(second))
        throw new LedgerUnsupportedError(this.#directory.url, "two could hold its lock at the same time");
    } finally {
      await this.#directory.calls.close(second);
    }
  }

  /** Frees the descriptor, after the last holder. */
  async close(): Promise<void> {
    await this.#line;
    await this.#forget();
  }

  #open(): Promise<number> {
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW;
    return this.#directory.calls.open(this.#directory.lockPath, flags, 0o666);
  }

  async #take({ sinceMs, signal }: LockPatience): Promise<number> {
    // The time in our own line is none that others held the lock.
    const refusedMs = Math.max(sinceMs, this.#freedMs);
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
      signal?.throwIfAborted();
      const fd = await this.#try();
      if (fd !== undefined) return fd;
      const waitedMs = performance.now() - refusedMs;
      const leftMs = this.#timeoutMs - waitedMs;
      if (leftMs <= 0) {
        this.#emit({ kind: "lock", taken: false, lockWaitMs: waitedMs, holdMs: 0 });
        throw new LedgerBusyError(this.#directory.url, waitedMs);
      }
      // Jitter, so that replicas that were refused together do not come back together.
      await sleep(Math.min(leftMs, waitMs * (0.5 + Math.random() / 2)));
    }
  }

  /** The descriptor with the lock; undefined if another holds it, or if the file was replaced meanwhile. */
  async #try(): Promise<number | undefined> {
    const { calls, lockPath, url } = this.#directory;
    try {
      if (this.#fd === undefined) {
        await this.#directory.check();
        this.#fd = await this.#open();
      }
      if (!tryLock(this.#fd)) return undefined;
      const [held, named] = [await calls.fstat(this.#fd), await calls.lstat(lockPath)];
      this.#everHeld = true;
      if (held.ino === named?.ino && held.dev === named.dev) return this.#fd;
      // The file was removed: others lock the one that has its name.
      await this.#forget();
      return undefined;
    } catch (error) {
      await this.#forget();
      if (errnoOf(error) === "CELLKIT_BUCKET_DISK" && !this.#everHeld)
        throw new LedgerUnsupportedError(url, "its file system has no flock", { cause: error });
      throw diskFailure(url, "take its lock", error, "no");
    }
  }

  async #release(fd: number): Promise<void> {
    this.#freedMs = performance.now();
    try {
      unlock(fd);
    } catch {
      // To close the file gives the lock back in any case.
      await this.#forget();
    }
  }

  async #forget(): Promise<void> {
    const fd = this.#fd;
    this.#fd = undefined;
    if (fd !== undefined) await quietly(this.#directory.calls.close(fd));
  }
}
