/** A ledger in the memory of one process, which forgets everything when that process ends: for tests, never for a router. */
import { randomUUID } from "node:crypto";
import { answerExisting, callChooseOwner, checkBody, checkId, checkOwner } from "./core/claim-check.ts";
import {
  checkKey,
  checkQuarantine,
  DEFAULT_LEDGER_NAME,
  type ResolvedLedgerOptions,
  resolveLedgerOptions,
} from "./core/ledger-options.ts";
import { formatRecord, parseRecord } from "./core/record.ts";
import { type Digest, loadDigest } from "./digest.ts";
import { CorruptRecordError, LedgerClosedError, LedgerMissingError, NotRetirableError } from "./errors.ts";
import type {
  Claim,
  LedgerCallOptions,
  LedgerEntry,
  LedgerOptions,
  Owner,
  QuarantineOptions,
  StoredLedger,
} from "./ledger.ts";

interface MemoryRecord {
  bytes: Uint8Array;
  modifiedMs: number;
  marked: boolean;
}

interface MemoryPlace {
  ledgerId: string;
  records: Map<string, MemoryRecord>;
}

/** Reaches the ledgers of a memory by their names, in this file only. */
let placesOf: (memory: LedgerMemory) => Map<string, MemoryPlace>;

/** What the ledgers of a test lie in. Two that are opened with the same one and the same name are one ledger, as two replicas have it. */
export class LedgerMemory {
  readonly #places = new Map<string, MemoryPlace>();

  static {
    placesOf = (memory) => memory.#places;
  }

  /**
   * Puts bytes where a record lies, so that a test can show what becomes of a corrupt one.
   * @param key the lowercase hex BLAKE3-256 of the id
   */
  plant(key: string, bytes: Uint8Array, name: string = DEFAULT_LEDGER_NAME): void {
    checkKey(key);
    findPlace(this, name).records.set(key, { bytes, modifiedMs: 0, marked: false });
  }
}

/** The ledger of that name, which is made if it is not there. */
function findPlace(memory: LedgerMemory, name: string): MemoryPlace {
  const places = placesOf(memory);
  const place = places.get(name) ?? { ledgerId: randomUUID(), records: new Map() };
  places.set(name, place);
  return place;
}

/**
 * A ledger that FORGETS: its records end with the process, so that what they guard could run twice. It is for tests, and
 * keeps the same rules as the others. No timers, no limit of records, and no randomness but its `ledgerId`.
 * @param options `memory` holds the records; each call without one makes an empty ledger of its own
 * @throws LedgerOptionError (CELLKIT_LEDGER_OPTION), LedgerMissingError (CELLKIT_LEDGER_MISSING)
 */
export async function openMemoryLedger(
  options: LedgerOptions & { memory?: LedgerMemory | undefined } = {},
): Promise<StoredLedger> {
  const resolved = resolveLedgerOptions(options, { capacity: undefined, now: Date.now });
  const memory = options.memory ?? new LedgerMemory();
  if (resolved.requireExisting && !placesOf(memory).has(resolved.name))
    throw new LedgerMissingError(`memory:${resolved.name}`, "nothing of that name is in this memory");
  return new MemoryLedger(resolved, findPlace(memory, resolved.name), await loadDigest());
}

class MemoryLedger implements StoredLedger {
  readonly url: string;
  readonly name: string;
  readonly ledgerId: string;
  readonly capacity: number | undefined;
  readonly #options: ResolvedLedgerOptions;
  readonly #records: Map<string, MemoryRecord>;
  readonly #digest: Digest;
  readonly #choosing = new Set<Promise<unknown>>();
  #closed: Promise<void> | undefined;

  constructor(options: ResolvedLedgerOptions, place: MemoryPlace, digest: Digest) {
    this.url = `memory:${options.name}`;
    this.name = options.name;
    this.ledgerId = place.ledgerId;
    this.capacity = options.capacity;
    this.#options = options;
    this.#records = place.records;
    this.#digest = digest;
  }

  async claim(
    id: string,
    body: Uint8Array | string,
    chooseOwner: () => Promise<string>,
    options: LedgerCallOptions = {},
  ): Promise<Claim> {
    this.#begin(options);
    checkId(id);
    checkBody(body);
    const key = this.#digest.key(id);
    const bodyHash = this.#digest.bodyHash(body);
    const known = this.#answerKnown(key, bodyHash);
    if (known !== undefined) return known;
    const choosing = callChooseOwner(chooseOwner, options.signal);
    this.#choosing.add(choosing);
    try {
      const owner = { backend: await choosing, bodyHash };
      const meanwhile = this.#answerKnown(key, bodyHash);
      if (meanwhile !== undefined) return meanwhile;
      this.#write(key, owner);
      return { kind: "new", owner };
    } finally {
      this.#choosing.delete(choosing);
    }
  }

  async lookup(id: string, options: LedgerCallOptions = {}): Promise<Owner | undefined> {
    this.#begin(options);
    checkId(id);
    return this.#read(this.#digest.key(id));
  }

  async retire(id: string, options: QuarantineOptions): Promise<boolean> {
    this.#beginRetiring(options);
    checkId(id);
    const key = this.#digest.key(id);
    const record = this.#records.get(key);
    if (record === undefined || this.#read(key) === undefined) return false;
    record.marked = true;
    return this.#removeAged(key, record, options.quarantineMs);
  }

  async sweep(options: QuarantineOptions): Promise<number> {
    this.#beginRetiring(options);
    let count = 0;
    for (const [key, record] of this.#records)
      if (record.marked && this.#removeAged(key, record, options.quarantineMs)) count++;
    return count;
  }

  async count(options: LedgerCallOptions = {}): Promise<number> {
    this.#begin(options);
    return this.#records.size;
  }

  async *entries(options: LedgerCallOptions = {}): AsyncGenerator<LedgerEntry> {
    this.#begin(options);
    for (const [key, record] of [...this.#records]) {
      this.#begin(options);
      yield describe(key, record);
    }
  }

  async entry(key: string, options: LedgerCallOptions = {}): Promise<LedgerEntry | undefined> {
    this.#begin(options);
    checkKey(key);
    const record = this.#records.get(key);
    return record === undefined ? undefined : describe(key, record);
  }

  async restore(
    key: string,
    owner: Owner,
    options: LedgerCallOptions = {},
  ): Promise<"added" | "present" | "conflict" | "full"> {
    this.#begin(options);
    checkKey(key);
    checkOwner(owner);
    const present = this.#read(key);
    if (present !== undefined)
      return present.backend === owner.backend && present.bodyHash === owner.bodyHash
        ? "present"
        : "conflict";
    if (this.#isFull()) return "full";
    this.#write(key, owner);
    return "added";
  }

  close(): Promise<void> {
    this.#closed ??= Promise.allSettled(this.#choosing).then(() => undefined);
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #begin({ signal }: LedgerCallOptions): void {
    if (this.#closed !== undefined) throw new LedgerClosedError(this.url);
    signal?.throwIfAborted();
  }

  #beginRetiring(options: QuarantineOptions): void {
    this.#begin(options);
    if (!this.#options.retirable) throw new NotRetirableError(this.url);
    checkQuarantine(options.quarantineMs);
  }

  #read(key: string): Owner | undefined {
    const record = this.#records.get(key);
    if (record === undefined) return undefined;
    const parsed = parseRecord(record.bytes);
    if ("problem" in parsed) throw new CorruptRecordError(this.url, key, parsed.problem);
    return parsed.owner;
  }

  /** The answer to a claim as things are; undefined if the id is free. */
  #answerKnown(key: string, bodyHash: string): Claim | undefined {
    const owner = this.#read(key);
    if (owner !== undefined) return answerExisting(owner, bodyHash);
    return this.#isFull() ? { kind: "full" } : undefined;
  }

  #isFull(): boolean {
    return this.capacity !== undefined && this.#records.size >= this.capacity;
  }

  #write(key: string, owner: Owner): void {
    const bytes = Buffer.from(formatRecord(owner));
    this.#records.set(key, { bytes, modifiedMs: this.#options.now(), marked: false });
  }

  /** A negative age (a clock that was set back) is young. */
  #removeAged(key: string, record: MemoryRecord, quarantineMs: number): boolean {
    return this.#options.now() - record.modifiedMs >= quarantineMs && this.#records.delete(key);
  }
}

function describe(key: string, { bytes, modifiedMs, marked }: MemoryRecord): LedgerEntry {
  const parsed = parseRecord(bytes);
  const owner = "owner" in parsed ? parsed.owner : undefined;
  return { key, owner, problem: "problem" in parsed ? parsed.problem : undefined, modifiedMs, marked };
}
