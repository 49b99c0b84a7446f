/** A ledger in a directory: what its calls do, step by step; each step has a file of its own. */
import { answerExisting, callChooseOwner, checkBody, checkId, checkOwner } from "../core/claim-check.ts";
import { checkKey, checkQuarantine } from "../core/ledger-options.ts";
import type { Digest } from "../digest.ts";
import { LedgerClosedError, LedgerError, NotRetirableError } from "../errors.ts";
import type {
  Claim,
  LedgerCallOptions,
  LedgerEntry,
  Owner,
  QuarantineOptions,
  StoredLedger,
} from "../ledger.ts";
import { quietly } from "./disk-failure.ts";
import type { GroupCommit } from "./group-commit.ts";
import type { LedgerDirectory } from "./ledger-directory.ts";
import type { PosixLedgerListener } from "./ledger-event.ts";
import type { LedgerLock } from "./ledger-lock.ts";
import { findEntry, listEntries } from "./listing.ts";
import { countRecords, type RecordCount } from "./record-count.ts";
import type { RecordFiles } from "./record-files.ts";
import type { Retirement } from "./retirement.ts";

/** What an open ledger is made of. */
export interface PosixLedgerParts {
  name: string;
  ledgerId: string;
  capacity: number;
  retirable: boolean;
  digest: Digest;
  directory: LedgerDirectory;
  lock: LedgerLock;
  files: RecordFiles;
  count: RecordCount;
  commit: GroupCommit;
  retirement: Retirement;
  emit: PosixLedgerListener;
}

/** See `openPosixLedger`. */
export class PosixLedger implements StoredLedger {
  readonly url: string;
  readonly name: string;
  readonly ledgerId: string;
  readonly capacity: number;
  readonly #parts: PosixLedgerParts;
  readonly #calls = new Set<Promise<unknown>>();
  #closed: Promise<void> | undefined;

  constructor(parts: PosixLedgerParts) {
    this.url = parts.directory.url;
    this.name = parts.name;
    this.ledgerId = parts.ledgerId;
    this.capacity = parts.capacity;
    this.#parts = parts;
  }

  claim(
    id: string,
    body: Uint8Array | string,
    chooseOwner: () => Promise<string>,
    options: LedgerCallOptions = {},
  ): Promise<Claim> {
    const startedMs = performance.now();
    return this.#run(options, async () => {
      checkId(id);
      checkBody(body);
      const { digest, emit } = this.#parts;
      try {
        const claim = await this.#claim(digest.key(id), digest.bodyHash(body), chooseOwner, options.signal);
        emit({ kind: "claim", result: claim.kind, durationMs: performance.now() - startedMs });
        return claim;
      } catch (error) {
        const code = error instanceof LedgerError ? { code: error.code } : {};
        emit({ kind: "claim", result: "failed", ...code, durationMs: performance.now() - startedMs });
        throw error;
      }
    });
  }

  lookup(id: string, options: LedgerCallOptions = {}): Promise<Owner | undefined> {
    return this.#run(options, async () => {
      checkId(id);
      return this.#parts.files.owner(this.#parts.digest.key(id));
    });
  }

  retire(id: string, options: QuarantineOptions): Promise<boolean> {
    return this.#retire(options, (sinceMs) => {
      checkId(id);
      const { digest, retirement } = this.#parts;
      return retirement.retire(digest.key(id), options.quarantineMs, { sinceMs, signal: options.signal });
    });
  }

  sweep(options: QuarantineOptions): Promise<number> {
    return this.#retire(options, (sinceMs) =>
      this.#parts.retirement.sweep(options.quarantineMs, { sinceMs, signal: options.signal }),
    );
  }

  count(options: LedgerCallOptions = {}): Promise<number> {
    return this.#run(options, async () => {
      const { directory } = this.#parts;
      await directory.check();
      const count = await countRecords(directory, { signal: options.signal });
      await directory.check();
      return count;
    });
  }

  async *entries(options: LedgerCallOptions = {}): AsyncGenerator<LedgerEntry> {
    this.#begin(options);
    for await (const entry of listEntries(this.#parts.directory, this.#parts.files, options.signal)) {
      yield entry;
      this.#begin(options);
    }
  }

  entry(key: string, options: LedgerCallOptions = {}): Promise<LedgerEntry | undefined> {
    return this.#run(options, async () => {
      checkKey(key);
      return findEntry(this.#parts.directory, this.#parts.files, key);
    });
  }

  restore(
    key: string,
    owner: Owner,
    options: LedgerCallOptions = {},
  ): Promise<"added" | "present" | "conflict" | "full"> {
    return this.#run(options, async () => {
      checkKey(key);
      checkOwner(owner);
      const { commit, files } = this.#parts;
      let there = await files.owner(key);
      if (there === undefined) {
        const outcome = await commit.publish(key, owner, options.signal);
        if (outcome.kind === "published") return "added";
        if (outcome.kind === "full") return "full";
        there = outcome.owner;
      }
      const same = there.backend === owner.backend && there.bodyHash === owner.bodyHash;
      return same ? "present" : "conflict";
    });
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #claim(
    key: string,
    bodyHash: string,
    chooseOwner: () => Promise<string>,
    signal: AbortSignal | undefined,
  ): Promise<Claim> {
    const { files, count, commit } = this.#parts;
    const known = await files.owner(key);
    if (known !== undefined) return answerExisting(known, bodyHash);
    if (await count.isFull()) {
      // The last free place may have been this very id's.
      const meanwhile = await files.owner(key);
      return meanwhile === undefined ? { kind: "full" } : answerExisting(meanwhile, bodyHash);
    }
    const owner = { backend: await callChooseOwner(chooseOwner, signal), bodyHash };
    const outcome = await commit.publish(key, owner, signal);
    if (outcome.kind === "published") return { kind: "new", owner };
    return outcome.kind === "full" ? outcome : answerExisting(outcome.owner, bodyHash);
  }

  #retire<T>(options: QuarantineOptions, call: (sinceMs: number) => Promise<T>): Promise<T> {
    const sinceMs = performance.now();
    return this.#run(options, async () => {
      if (!this.#parts.retirable) throw new NotRetirableError(this.url);
      checkQuarantine(options.quarantineMs);
      return call(sinceMs);
    });
  }

  #begin({ signal }: LedgerCallOptions): void {
    if (this.#closed !== undefined) throw new LedgerClosedError(this.url);
    signal?.throwIfAborted();
  }

  async #run<T>(options: LedgerCallOptions, call: () => Promise<T>): Promise<T> {
    this.#begin(options);
    const running = call();
    this.#calls.add(running);
    try {
      return await running;
    } finally {
      this.#calls.delete(running);
    }
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#calls);
    const { commit, count, lock, directory } = this.#parts;
    await commit.close();
    await count.close();
    await lock.close();
    // It was opened for reading: nothing is lost with it.
    await quietly(directory.close());
  }
}
