/** A ledger in a bucket: create-if-absent is the claim. */
import type { Bucket } from "@cellkit/bucket";
import { answerExisting, callChooseOwner, checkBody, checkId, checkOwner } from "../core/claim-check.ts";
import {
  checkKey,
  checkQuarantine,
  type ResolvedLedgerOptions,
  resolveLedgerOptions,
} from "../core/ledger-options.ts";
import { MAX_RECORD_BYTES } from "../core/record.ts";
import { type Digest, loadDigest } from "../digest.ts";
import {
  LedgerClosedError,
  LedgerOptionError,
  LedgerUnavailableError,
  NotRetirableError,
  OwnerChoiceError,
} from "../errors.ts";
import type {
  Claim,
  LedgerCallOptions,
  LedgerEntry,
  LedgerOptions,
  Owner,
  QuarantineOptions,
  StoredLedger,
} from "../ledger.ts";
import { openCreationMarker } from "./creation-marker.ts";
import { isCounted, type ListedEntry, listEntries, readEntries, readOne } from "./entries.ts";
import { inParallel } from "./in-parallel.ts";
import { retireRecord, sweepRecord } from "./retirement.ts";
import { LedgerStore, type Look } from "./store.ts";
import { makeRecord, STONE_BYTES } from "./stored-object.ts";

/** How often a claim is tried whose id others claim and retire in the meantime. */
const RACE_LIMIT_COUNT = 8;
const SWEEP_COUNT = 16;
/** The white space at a record's end counts, so that readers have one limit everywhere. */
const TOO_LONG = `needs an object of more than ${MAX_RECORD_BYTES} bytes with the mark of its claim`;

/** Options of {@link openBucketLedger}. `capacity` is refused: a bucket cannot keep one. */
export interface BucketLedgerOptions extends LedgerOptions {
  /** Where the ledger lies: objects below `ledger/<name>/`. It must decide conditional writes; `qualifyBucket` tells. */
  bucket: Bucket;
  /** Whether closing the ledger closes the bucket too. @default false */
  closeBucket?: boolean | undefined;
  /** Ends the opening. */
  signal?: AbortSignal | undefined;
}

/**
 * Opens a ledger in a bucket. A claim of a new id is one GET and one conditional PUT, everything else about one id one GET; a look is never
 * a listing. The time of a claim that waits for a lost answer is bounded by the bucket's `settleTimeoutMs`.
 *
 * There is no capacity: a bucket has no counter, and records that are counted by a listing before they are written can be too many by as
 * many as are being written, so `capacity` is refused rather than kept nearly.
 * @throws LedgerOptionError (CELLKIT_LEDGER_OPTION) for an option out of range, and for a capacity
 * @throws LedgerMissingError (CELLKIT_LEDGER_MISSING) with `requireExisting` where no ledger was created
 * @throws LedgerUnsupportedError (CELLKIT_LEDGER_UNSUPPORTED) for a ledger of a format that this version does not know
 * @throws LedgerUnavailableError (CELLKIT_LEDGER_UNAVAILABLE) when the bucket cannot be read
 */
export async function openBucketLedger(options: BucketLedgerOptions): Promise<StoredLedger> {
  const resolved = resolveLedgerOptions(options, { capacity: undefined, now: Date.now });
  if (resolved.capacity !== undefined)
    throw new LedgerOptionError(
      `a ledger in a bucket has no capacity (${resolved.capacity} was given): it could not keep to it while several write`,
    );
  if (typeof options.bucket?.createIfAbsent !== "function")
    throw new LedgerOptionError("bucket must be what openBucket answers");
  const store = new LedgerStore(options.bucket, resolved.name);
  const { requireExisting } = resolved;
  const ledgerId = await openCreationMarker(store, { requireExisting, signal: options.signal });
  return new BucketLedger(store, await loadDigest(), {
    ...resolved,
    ledgerId,
    closeBucket: options.closeBucket ?? false,
  });
}

class BucketLedger implements StoredLedger {
  readonly url: string;
  readonly name: string;
  readonly ledgerId: string;
  readonly capacity = undefined;
  readonly #store: LedgerStore;
  readonly #digest: Digest;
  readonly #options: ResolvedLedgerOptions & { closeBucket: boolean };
  readonly #running = new Set<Promise<unknown>>();
  #closed: Promise<void> | undefined;

  constructor(
    store: LedgerStore,
    digest: Digest,
    options: ResolvedLedgerOptions & { ledgerId: string; closeBucket: boolean },
  ) {
    this.url = store.url;
    this.name = options.name;
    this.ledgerId = options.ledgerId;
    this.#store = store;
    this.#digest = digest;
    this.#options = options;
  }

  claim(
    id: string,
    body: Uint8Array | string,
    chooseOwner: () => Promise<string>,
    { signal }: LedgerCallOptions = {},
  ): Promise<Claim> {
    return this.#run(signal, async () => {
      checkId(id);
      checkBody(body);
      const key = this.#digest.key(id);
      const bodyHash = this.#digest.bodyHash(body);
      const found = await this.#store.look(key, signal);
      if (found.kind === "record") return answerExisting(found.owner, bodyHash);
      const owner = { backend: await callChooseOwner(chooseOwner, signal), bodyHash };
      const record = makeRecord(owner);
      if (record.length > MAX_RECORD_BYTES)
        throw new OwnerChoiceError(`the owner chosen for a new id ${TOO_LONG}; nothing was recorded`);
      const made = await this.#make(key, record, found, signal);
      return made === "made" ? { kind: "new", owner } : answerExisting(made, bodyHash);
    });
  }

  lookup(id: string, { signal }: LedgerCallOptions = {}): Promise<Owner | undefined> {
    return this.#run(signal, async () => {
      checkId(id);
      const found = await this.#store.look(this.#digest.key(id), signal);
      return found.kind === "record" ? found.owner : undefined;
    });
  }

  retire(id: string, { quarantineMs, signal }: QuarantineOptions): Promise<boolean> {
    return this.#run(signal, async () => {
      checkId(id);
      const quarantine = this.#quarantine(quarantineMs);
      return retireRecord(this.#store, this.#digest.key(id), quarantine, signal);
    });
  }

  sweep({ quarantineMs, signal }: QuarantineOptions): Promise<number> {
    return this.#run(signal, async () => {
      const quarantine = this.#quarantine(quarantineMs);
      const swept = inParallel(this.#list(signal), SWEEP_COUNT, async (entry) => {
        if (entry.kind === "foreign") return false;
        if (entry.kind === "record" && entry.mark === undefined) return false;
        const isRecord = entry.kind === "record" && entry.object.sizeBytes !== STONE_BYTES;
        return sweepRecord(this.#store, entry.key, isRecord ? entry.object : undefined, quarantine, signal);
      });
      let count = 0;
      for await (const isGone of swept) if (isGone) count += 1;
      return count;
    });
  }

  count({ signal }: LedgerCallOptions = {}): Promise<number> {
    return this.#run(signal, async () => {
      let count = 0;
      for await (const entry of this.#list(signal)) if (isCounted(entry)) count += 1;
      return count;
    });
  }

  async *entries({ signal }: LedgerCallOptions = {}): AsyncGenerator<LedgerEntry> {
    this.#requireOpen();
    for await (const entry of readEntries(this.#store, this.#store.keys.folder, signal)) {
      this.#requireOpen();
      yield entry;
    }
  }

  entry(key: string, { signal }: LedgerCallOptions = {}): Promise<LedgerEntry | undefined> {
    return this.#run(signal, async () => {
      checkKey(key);
      return readOne(this.#store, key, signal);
    });
  }

  restore(
    key: string,
    owner: Owner,
    { signal }: LedgerCallOptions = {},
  ): Promise<"added" | "present" | "conflict"> {
    return this.#run(signal, async () => {
      checkKey(key);
      checkOwner(owner);
      const record = makeRecord(owner);
      if (record.length > MAX_RECORD_BYTES)
        throw new LedgerOptionError(`the owner to be restored ${TOO_LONG}`);
      const found = await this.#store.look(key, signal);
      const made = found.kind === "record" ? found.owner : await this.#make(key, record, found, signal);
      if (made === "made") return "added";
      return made.backend === owner.backend && made.bodyHash === owner.bodyHash ? "present" : "conflict";
    });
  }

  close(): Promise<void> {
    this.#closed ??= (async () => {
      await Promise.allSettled(this.#running);
      if (this.#options.closeBucket)
        await this.#store.guard(undefined, "no", () => this.#store.bucket.close());
    })();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Writes a record where a look found none. Answers whose record stands if it is another's. */
  async #make(
    key: string,
    record: Uint8Array,
    free: Exclude<Look, { kind: "record" }>,
    signal: AbortSignal | undefined,
  ): Promise<"made" | Owner> {
    let found: Look = free;
    for (let count = 1; count <= RACE_LIMIT_COUNT; count += 1) {
      const etag = found.kind === "retired" ? found.etag : undefined;
      const { applied, settled } = await this.#store.write(
        this.#store.keys.record(key),
        record,
        etag,
        signal,
      );
      if (applied) return "made";
      found = await this.#store.look(key, signal, "maybe");
      // Whether it was ours that is retired by now: others may have been answered `existing` by it, so it must not be new again.
      if (found.kind === "retired" && settled)
        throw new LedgerUnavailableError(this.url, `the record ${key} was retired meanwhile`, "maybe");
      if (found.kind !== "record") continue;
      // Ours, although refused: something on the way sent it twice, and the second was told that the first is there.
      return Buffer.compare(found.bytes, record) === 0 ? "made" : found.owner;
    }
    throw new LedgerUnavailableError(
      this.url,
      `the record ${key} came and went ${RACE_LIMIT_COUNT} times meanwhile`,
      "no",
    );
  }

  #list(signal: AbortSignal | undefined): AsyncGenerator<ListedEntry> {
    return listEntries(this.#store, this.#store.keys.folder, signal);
  }

  #quarantine(quarantineMs: number): { quarantineMs: number; nowMs: number } {
    if (!this.#options.retirable) throw new NotRetirableError(this.url);
    checkQuarantine(quarantineMs);
    return { quarantineMs, nowMs: this.#options.now() };
  }

  #requireOpen(): void {
    if (this.#closed !== undefined) throw new LedgerClosedError(this.url);
  }

  /** Runs a call, so that closing waits for it. */
  async #run<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    this.#requireOpen();
    signal?.throwIfAborted();
    const running = work();
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }
}
