/**
 * Publishes records in groups, one group after the other. A group is everybody who came while the one before was published;
 * nobody waits for a group to fill. Its records are written aside, then fsynced in parallel; one short hold of the lock links
 * them to their names; one fsync of the directory, after the lock was given back, makes them all durable. To begin a group
 * while another one is synced would be slower, and would hold the lock longer (measured 10 ms against 1 ms for 64 links on ext4):
 * changes of a directory wait while the journal is being written.
 *
 * Why a record may be seen before it is durable: another replica that finds it answers `existing`, which authorizes
 * nothing. Only `new` does, and that is answered last.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
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

/** The most records of a group: at about 15 us a link, the lock is held for 2 ms then. */
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

type Outcome = Published | { kind: "failed"; error: unknown };

/** A record in the line. */
interface Waiting {
  key: string;
  owner: Owner;
  sinceMs: number;
  answer: PromiseWithResolvers<Published>;
}

/** A record that is durable in its staging file. */
interface Staged extends Waiting {
  path: string;
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
  /** Whether there may be marks for the sweep. */
  retirable: boolean;
}

/** The line of records that are to be published. */
export class GroupCommit {
  readonly #parts: GroupCommitParts;
  readonly #line: Waiting[] = [];
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
    signal?.throwIfAborted();
    const waiting = { key, owner, sinceMs: performance.now(), answer: Promise.withResolvers<Published>() };
    const onAbort = () => {
      const at = this.#line.indexOf(waiting);
      if (at >= 0) this.#line.splice(at, 1);
      waiting.answer.reject(signal?.reason);
    };
    signal?.addEventListener("abort", onAbort);
    this.#line.push(waiting);
    this.#running ??= this.#run();
    try {
      return await waiting.answer.promise;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** Waits until nobody waits. */
  async close(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    // Those who come in the same turn of the event loop are together from the start.
    await nextTurn();
    while (this.#line.length > 0) {
      const group = this.#line.splice(0, GROUP_LIMIT_COUNT);
      try {
        const staged = await this.#stage(group);
        if (staged.length > 0) await this.#commit(staged);
      } catch (error) {
        // Whoever has an answer keeps it.
        for (const { answer } of group) answer.reject(error);
      }
    }
    this.#running = undefined;
  }

  async #stage(group: readonly Waiting[]): Promise<Staged[]> {
    const { staging, directory } = this.#parts;
    const outcomes = await staging.write(group.map(({ owner }) => formatRecord(owner)));
    return group.flatMap((waiting, index) => {
      const outcome = outcomes[index];
      if (outcome !== undefined && "path" in outcome) return [{ ...waiting, path: outcome.path }];
      waiting.answer.reject(diskFailure(directory.url, "write a record", outcome?.error, "no"));
      return [];
    });
  }

  async #commit(staged: readonly Staged[]): Promise<void> {
    const { directory, count, staging, emit } = this.#parts;
    try {
      const linked: Staged[] = [];
      for (const [{ answer, ...record }, outcome] of await this.#lockAndLink(staged)) {
        if (outcome.kind === "published") linked.push({ answer, ...record });
        else if (outcome.kind === "failed") answer.reject(outcome.error);
        else answer.resolve(outcome);
      }
      if (linked.length === 0) return;
      const startedMs = performance.now();
      try {
        await directory.sync();
      } catch (cause) {
        const error = diskFailure(directory.url, "make its directory durable", cause, "maybe");
        for (const { answer } of linked) answer.reject(error);
        return;
      }
      for (const { answer } of linked) answer.resolve({ kind: "published" });
      emit({ kind: "commit", recordCount: linked.length, syncMs: performance.now() - startedMs });
      count.rescanIfDue();
    } finally {
      await Promise.all(staged.map(({ path }) => staging.discard(path)));
    }
  }

  /** Waits for the lock as long as anybody of the group still may. */
  async #lockAndLink(staged: readonly Staged[]): Promise<Map<Staged, Outcome>> {
    const { lock, lockTimeoutMs } = this.#parts;
    const outcomes = new Map<Staged, Outcome>();
    for (let left = staged; ; ) {
      const [oldest] = left;
      if (oldest === undefined) return outcomes;
      const patient = left;
      try {
        await lock.hold(() => this.#link(patient, outcomes), { sinceMs: oldest.sinceMs });
        return outcomes;
      } catch (error) {
        if (!(error instanceof LedgerBusyError)) throw error;
        const overdueMs = performance.now() - lockTimeoutMs;
        left = patient.filter(({ sinceMs }) => sinceMs > overdueMs);
        for (const one of patient) if (!left.includes(one)) outcomes.set(one, { kind: "failed", error });
        this.#giveUpLine(overdueMs, error);
      }
    }
  }

  /** Those in the line who came as early have waited as long: nothing is written for them first. */
  #giveUpLine(overdueMs: number, error: LedgerBusyError): void {
    const patientAt = this.#line.findIndex(({ sinceMs }) => sinceMs > overdueMs);
    const overdue = this.#line.splice(0, patientAt < 0 ? this.#line.length : patientAt);
    for (const { answer } of overdue) answer.reject(error);
  }

  /** Under the lock: looks again, counts, links. */
  async #link(group: readonly Staged[], outcomes: Map<Staged, Outcome>): Promise<void> {
    const { directory, count } = this.#parts;
    const room = await count.room(group.length, await directory.check());
    count.beginChange(await directory.check());
    let added: number;
    try {
      added = await this.#fillRoom(room, group, outcomes);
    } catch (error) {
      count.forget();
      throw error;
    }
    try {
      await count.endChange(added, await directory.check());
    } catch {
      // The records are linked; only what is known of their number is lost, and the next claim meets the failure itself.
      count.forget();
    }
  }

  /** Links as many as there is room for, and finds out about the others; answers how many were linked. */
  async #fillRoom(room: number, group: readonly Staged[], outcomes: Map<Staged, Outcome>): Promise<number> {
    if (this.#parts.retirable) for (const { key } of group) await this.#removeOrphanMark(key);
    const left = [...group];
    let added = 0;
    // To link is the second look, too: it fails if anything has the name. Then there is room for a further one.
    while (added < room && left.length > 0) {
      const some = left.splice(0, room - added);
      for (const [staged, outcome] of await this.#linkSome(some)) {
        outcomes.set(staged, outcome);
        if (outcome.kind === "published") added += 1;
      }
    }
    for (const staged of left) outcomes.set(staged, await settle(() => this.#find(staged)));
    return added;
  }

  /** A retirement that crashed may have left its mark without a record. A new record must not take it over, or it would be swept. */
  async #removeOrphanMark(key: string): Promise<void> {
    const { directory } = this.#parts;
    const { calls } = directory;
    const markPath = directory.markPath(key);
    try {
      if ((await calls.lstat(markPath)) === undefined) return;
      if ((await calls.lstat(directory.recordPath(key))) === undefined) await calls.unlink(markPath);
    } catch (error) {
      throw diskFailure(directory.url, "remove a mark that was left behind", error, "no");
    }
  }

  async #linkSome(some: readonly Staged[]): Promise<[Staged, Outcome][]> {
    const { directory } = this.#parts;
    const links = await directory.calls.linkEach(
      some.map(({ key, path }) => [path, directory.recordPath(key)]),
    );
    const outcomes: [Staged, Outcome][] = [];
    for (const [index, staged] of some.entries()) {
      const failure = links[index];
      const outcome: Outcome =
        failure === undefined
          ? { kind: "published" }
          : await settle(() => this.#explain(staged, failure.error));
      outcomes.push([staged, outcome]);
    }
    return outcomes;
  }

  /** What it means that a record could not be linked to its name. */
  async #explain(staged: Staged, error: unknown): Promise<Published> {
    const { directory } = this.#parts;
    const errno = errnoOf(error);
    if (errno !== "EEXIST") {
      const recorded = errno !== undefined && SURELY_NOT_LINKED.has(errno) ? "no" : "maybe";
      throw diskFailure(directory.url, "give a record its name", error, recorded);
    }
    // NFS may repeat a call whose answer was lost, and then refuse its own link.
    if (await this.#isSameFile(staged.path, directory.recordPath(staged.key))) return { kind: "published" };
    const found = await this.#find(staged);
    if (found.kind !== "full") return found;
    const problem = "a record could not be linked because one is there, and none is there";
    throw new LedgerUnavailableError(directory.url, problem, "maybe");
  }

  async #find({ key }: Staged): Promise<Published> {
    const owner = await this.#parts.files.owner(key);
    return owner === undefined ? { kind: "full" } : { kind: "found", owner };
  }

  async #isSameFile(one: string, other: string): Promise<boolean> {
    const { calls, url } = this.#parts.directory;
    try {
      const [a, b] = [await calls.lstat(one), await calls.lstat(other)];
      return a !== undefined && b !== undefined && a.ino === b.ino && a.dev === b.dev;
    } catch (error) {
      throw diskFailure(url, "look at a record", error, "maybe");
    }
  }
}

/** A failure as an outcome, since the others of the group go on. */
async function settle(find: () => Promise<Published>): Promise<Outcome> {
  try {
    return await find();
  } catch (error) {
    return { kind: "failed", error };
  }
}
