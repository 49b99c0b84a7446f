/** Frees ids whose records are older than a quarantine; the order of the steps is the original's. */
import { constants } from "node:fs";
import { diskFailure, quietly } from "./disk-failure.ts";
import { type LedgerDirectory, markKey } from "./ledger-directory.ts";
import type { LedgerLock, LockPatience } from "./ledger-lock.ts";
import type { RecordCount } from "./record-count.ts";
import type { FoundRecord, RecordFiles } from "./record-files.ts";

/** Marks that one hold of the lock looks at, so that a large sweep does not starve claims. */
const MARKS_A_HOLD_COUNT = 64;

const MARK_FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW;

/** What retirement needs of the ledger. */
export interface RetirementParts {
  directory: LedgerDirectory;
  lock: LedgerLock;
  files: RecordFiles;
  count: RecordCount;
  now: () => number;
}

/** Retires and sweeps. */
export class Retirement {
  readonly #parts: RetirementParts;

  constructor(parts: RetirementParts) {
    this.#parts = parts;
  }

  /** Removes the record if it is old enough, else marks it; answers whether it was removed. */
  async retire(key: string, quarantineMs: number, patience: LockPatience): Promise<boolean> {
    const { files, lock } = this.#parts;
    return lock.hold(async () => {
      const found = await files.inspect(key);
      if (found === undefined) return false;
      files.ownerOf(key, found);
      const aged = this.#isAged(found, quarantineMs);
      await this.#change(aged ? 1 : 0, () => (aged ? this.#remove(key) : this.#mark(key)));
      return aged;
    }, patience);
  }

  /** Removes what is marked and old enough, and marks without a record; answers how many records that were. */
  async sweep(quarantineMs: number, patience: LockPatience): Promise<number> {
    const marked = await this.#listMarked();
    let removedCount = 0;
    for (let at = 0; at < marked.length; at += MARKS_A_HOLD_COUNT) {
      const keys = marked.slice(at, at + MARKS_A_HOLD_COUNT);
      const sinceMs = at === 0 ? patience.sinceMs : performance.now();
      removedCount += await this.#sweepSome(keys, quarantineMs, { ...patience, sinceMs });
    }
    return removedCount;
  }

  async #listMarked(): Promise<string[]> {
    const { directory } = this.#parts;
    const keys: string[] = [];
    try {
      await directory.calls.eachName(directory.path, (name) => {
        const key = markKey(name);
        if (key !== undefined) keys.push(key);
        return true;
      });
    } catch (error) {
      throw diskFailure(directory.url, "list its directory", error, "no");
    }
    await directory.check();
    return keys;
  }

  async #sweepSome(keys: readonly string[], quarantineMs: number, patience: LockPatience): Promise<number> {
    const { files, lock } = this.#parts;
    return lock.hold(async () => {
      const aged: string[] = [];
      const orphans: string[] = [];
      for (const key of keys) {
        // Retired and claimed anew since the marks were listed: then its record is not the one that was marked.
        if (!(await this.#isMarked(key))) continue;
        const found = await files.inspect(key);
        if (found === undefined) orphans.push(key);
        // A record that cannot be read stays: what its id once authorized is not known.
        else if ("problem" in found.content) files.reportCorrupt(key, found.content.problem);
        else if (this.#isAged(found, quarantineMs)) aged.push(key);
      }
      if (aged.length + orphans.length === 0) return 0;
      await this.#change(aged.length, async () => {
        for (const key of aged) await this.#remove(key);
        for (const key of orphans) await this.#unmark(key);
      });
      return aged.length;
    }, patience);
  }

  /** A negative age (a clock that was set back) is young. */
  #isAged({ modifiedMs }: FoundRecord, quarantineMs: number): boolean {
    return this.#parts.now() - modifiedMs >= quarantineMs;
  }

  /** Changes the directory, durably. */
  async #change(removedCount: number, change: () => Promise<void>): Promise<void> {
    const { count, directory } = this.#parts;
    count.beginChange(await directory.check());
    try {
      await change();
      await directory.sync();
      await count.endChange(-removedCount, await directory.check());
    } catch (error) {
      count.forget();
      throw diskFailure(directory.url, "retire records durably", error, "maybe");
    }
  }

  /** The record first: a mark without a record is swept, a record without its mark would stay. */
  async #remove(key: string): Promise<void> {
    const { directory } = this.#parts;
    await directory.calls.unlink(directory.recordPath(key));
    await this.#unmark(key);
  }

  async #unmark(key: string): Promise<void> {
    const { directory } = this.#parts;
    if (await this.#isMarked(key)) await directory.calls.unlink(directory.markPath(key));
  }

  async #isMarked(key: string): Promise<boolean> {
    const { directory } = this.#parts;
    try {
      return (await directory.calls.lstat(directory.markPath(key))) !== undefined;
    } catch (error) {
      throw diskFailure(directory.url, `look at the mark of ${key}`, error, "maybe");
    }
  }

  async #mark(key: string): Promise<void> {
    const { directory } = this.#parts;
    const { calls } = directory;
    const fd = await calls.open(directory.markPath(key), MARK_FLAGS, 0o600);
    try {
      await calls.fsync(fd);
    } finally {
      await quietly(calls.close(fd));
    }
  }
}
