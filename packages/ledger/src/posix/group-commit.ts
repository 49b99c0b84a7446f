/**
 * Publishes records in groups. Each is written aside and fsynced on its own, at once and in parallel. Those that are ready
 * when the lock is had are linked to their names in one short hold, and one fsync of the directory, after the lock was
 * given back, makes them all durable; who becomes ready meanwhile is in the next group. Nobody waits for a group to fill.
 *
 * Why a record may be seen before it is durable: another replica that finds it answers `existing`, which authorizes
 * nothing. Only `new` does, and that is answered last.
 */
import { formatRecord } from "../core/record.ts";
import { LedgerBusyError, LedgerUnavailableError } from "../errors.ts";
import type { Owner } from "../ledger.ts";
import { diskFailure, errnoOf } from "./disk-failure.ts";
import type { LedgerDirectory } from "./ledger-directory.ts";
import type { PosixLedgerListener } from "./ledger-event.ts";
import type { LedgerLock } from "./ledger-lock.ts";
import type { RecordCount } from "./record-count.ts";
import type { RecordFiles } from "./record-files.ts";
import type { Staging } from "./staging.ts";

/** At most so many are linked in one hold of the lock; at about 20 us each that is 3 ms. */
const GROUP_LIMIT_COUNT = 128;

/** Failures of link(2) that leave no doubt: nothing was linked. */
const SURELY_NOT_LINKED = new Set([
  "ENOSPC",
  "EDQUOT",
  "EACCES",
  "EPERM",
  "EROFS",
  "EMLINK",
  "ENOENT",
  "EXDEV",
]);

/** What became of a record: durable under its name, another one there, or no room. */
export type Published = { kind: "published" } | { kind: "found"; owner: Owner } | { kind: "full" };

interface Waiting {
  key: string;
  staged: string;
  sinceMs: number;
  answer: PromiseWithResolvers<Published>;
}

/** What a group needs of the ledger. */
export interface GroupCommitParts {
  directory: LedgerDirectory;
  lock: LedgerLock;
  staging: Staging;
  files: RecordFiles;
  count: RecordCount;
  emit: PosixLedgerListener;
  /** After so long without the lock a record is given up. */
  lockTimeoutMs: number;
}

/** The line of records that are to be published. */
export class GroupCommit {
  readonly #parts: GroupCommitParts;
  readonly #ready: Waiting[] = [];
  #running: Promise<void> | undefined;

  constructor(parts: GroupCommitParts) {
    this.#parts = parts;
  }

  /**
   * Puts a record where none is, durably.
   * @param signal ends the waiting; the record may be published all the same
   * @throws LedgerBusyError, LedgerUnavailableError, CorruptRecordError
   */
  async publish(key: string, owner: Owner, signal?: AbortSignal): Promise<Published> {
    const { staging, directory } = this.#parts;
    let staged: string;
    try {
      staged = await staging.write(formatRecord(owner));
    } catch (error) {
      throw diskFailure(directory.url, "write a record", error, "no");
    }
    const answer = Promise.withResolvers<Published>();
    const waiting = { key, staged, sinceMs: performance.now(), answer };
    const onAbort = () => {
      const at = this.#ready.indexOf(waiting);
      if (at >= 0) {
        this.#ready.splice(at, 1);
        this.#discard([waiting]);
      }
      answer.reject(signal?.reason);
    };
    this.#ready.push(waiting);
    if (signal?.aborted === true) onAbort();
    else signal?.addEventListener("abort", onAbort);
    this.#running ??= this.#run();
    try {
      return await answer.promise;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** Waits until nobody waits. */
  async close(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    for (let oldest = this.#ready[0]; oldest !== undefined; oldest = this.#ready[0]) {
      const group: Waiting[] = [];
      try {
        await this.#commit(group, oldest.sinceMs);
      } catch (error) {
        // Before the lock was had, the group is empty: then it is who waited long enough, or everybody.
        if (group.length === 0) group.push(...this.#takeFailed(error));
        for (const { answer } of group) answer.reject(error);
        await this.#discard(group);
      }
    }
    this.#running = undefined;
  }

  #takeFailed(error: unknown): Waiting[] {
    if (!(error instanceof LedgerBusyError)) return this.#ready.splice(0);
    const overdueMs = performance.now() - this.#parts.lockTimeoutMs;
    const overdue = this.#ready.findIndex(({ sinceMs }) => sinceMs > overdueMs);
    return this.#ready.splice(0, overdue < 0 ? this.#ready.length : overdue);
  }

  async #commit(group: Waiting[], sinceMs: number): Promise<void> {
    const { lock, directory, count, emit } = this.#parts;
    const outcomes = new Map<Waiting, Published | { kind: "failed"; error: unknown }>();
    await lock.hold(
      async () => {
        group.push(...this.#ready.splice(0, GROUP_LIMIT_COUNT));
        await this.#link(group, outcomes);
      },
      { sinceMs },
    );
    const linked: Waiting[] = [];
    for (const waiting of group) {
      const outcome = outcomes.get(waiting);
      if (outcome?.kind === "published") linked.push(waiting);
      else if (outcome?.kind === "failed") waiting.answer.reject(outcome.error);
      else if (outcome !== undefined) waiting.answer.resolve(outcome);
    }
    const startedMs = performance.now();
    const synced = linked.length === 0 ? Promise.resolve() : directory.sync();
    // In the shadow of the fsync; a failure of that is still seen below.
    const [sync] = await Promise.allSettled([synced, this.#discard(group)]);
    if (sync.status === "rejected") {
      const error = diskFailure(directory.url, "make its directory durable", sync.reason, "maybe");
      for (const { answer } of linked) answer.reject(error);
      return;
    }
    for (const { answer } of linked) answer.resolve({ kind: "published" });
    if (linked.length > 0) {
      emit({ kind: "commit", recordCount: linked.length, syncMs: performance.now() - startedMs });
      count.rescanIfDue();
    }
  }

  /** Under the lock: looks again, counts, links. */
  async #link(
    group: readonly Waiting[],
    outcomes: Map<Waiting, Published | { kind: "failed"; error: unknown }>,
  ): Promise<void> {
    const { directory, count } = this.#parts;
    const room = await count.room(group.length, await directory.check());
    let added = 0;
    for (const waiting of group) {
      try {
        const outcome = await (added < room ? this.#linkOne(waiting) : this.#findOne(waiting));
        if (outcome.kind === "published") added += 1;
        outcomes.set(waiting, outcome);
      } catch (error) {
        outcomes.set(waiting, { kind: "failed", error });
      }
    }
    if (added === 0) return;
    try {
      count.changedByUs(added, await directory.check());
    } catch {
      // The records are linked; only what is known of their number is lost, and the next claim meets the failure itself.
      count.forget();
    }
  }

  async #linkOne(waiting: Waiting): Promise<Published> {
    const { directory } = this.#parts;
    const path = directory.recordPath(waiting.key);
    try {
      // The second look, too: it fails if anything has the name.
      await directory.calls.link(waiting.staged, path);
      return { kind: "published" };
    } catch (error) {
      const errno = errnoOf(error);
      if (errno === "EEXIST") {
        // NFS may repeat a call whose answer was lost, and then refuse its own link.
        if (await this.#isSameFile(waiting.staged, path)) return { kind: "published" };
        return this.#findOne(waiting);
      }
      const recorded = errno !== undefined && SURELY_NOT_LINKED.has(errno) ? "no" : "maybe";
      throw diskFailure(directory.url, "give a record its name", error, recorded);
    }
  }

  async #findOne({ key }: Waiting): Promise<Published> {
    const owner = await this.#parts.files.owner(key);
    return owner === undefined ? { kind: "full" } : { kind: "found", owner };
  }

  async #isSameFile(one: string, other: string): Promise<boolean> {
    const { calls, url } = this.#parts.directory;
    try {
      const [a, b] = [await calls.lstat(one), await calls.lstat(other)];
      return a !== undefined && b !== undefined && a.ino === b.ino && a.dev === b.dev;
    } catch (cause) {
      throw new LedgerUnavailableError(url, "it could not look at a record", "maybe", { cause });
    }
  }

  async #discard(group: readonly Waiting[]): Promise<void> {
    for (const { staged } of group) await this.#parts.staging.discard(staged);
  }
}
