/** What a ledger is, whatever stores it. */

/** Who an id belongs to, as its record says. */
export interface Owner {
  /** The origin of the dispatcher, `http://host[:port]`, at most 1,024 bytes. The text is the identity; nothing normalizes it. */
  backend: string;
  /** `blake3:` and 64 lowercase hex digits over the exact bytes of the body that claimed the id. */
  bodyHash: string;
}

/**
 * The answer to a claim.
 * - `new`: the record is durable and names the owner just chosen. Only now may the one side effect begin.
 * - `existing`: the id was claimed before with the same bytes. Whatever it authorized may have happened: ask the owner.
 * - `conflict`: the id was claimed before with other bytes. Nothing was written.
 * - `full`: the id is new and the ledger is at its capacity. Nothing was written.
 */
export type Claim = { kind: "new" | "existing"; owner: Owner } | { kind: "conflict" } | { kind: "full" };

/** What every call that waits takes. */
export interface LedgerCallOptions {
  /** Ends the waiting. A claim that was ended may have been recorded all the same: claim again to learn it. */
  signal?: AbortSignal | undefined;
}

/** How long a record of a retirable ledger keeps its id from being used again. */
export interface QuarantineOptions extends LedgerCallOptions {
  /** From the record's last modification; longer than anything that the id once authorized can still be admitted. */
  quarantineMs: number;
}

/**
 * Durable claims: an id belongs to one owner and one body, for ever. Every method of every ledger throws a
 * `LedgerError`; a store that cannot be asked, and a record that cannot be read, are errors and never "absent".
 */
export interface Ledger extends AsyncDisposable {
  /**
   * Binds an id to an owner, once. Claiming again with the same bytes finds the first owner.
   * @param id its UTF-8 bytes are hashed with BLAKE3-256; the id itself is never stored. 1 to 4,096 bytes
   * @param body the exact bytes that the id stands for; of a text, its UTF-8 bytes
   * @param chooseOwner answers the origin for a new id. Called only when a first look did not find the id, and before any lock;
   *   if somebody else claims the id meanwhile, what it chose is dropped. Nothing limits its time: it must end by itself, or the
   *   claim be given a `signal`; until then the claim waits, and so does {@link Ledger.close}
   * @throws LedgerOptionError (CELLKIT_LEDGER_OPTION) for an id or a body of another kind, or with half of a surrogate pair
   * @throws OwnerChoiceError (CELLKIT_LEDGER_OWNER) when chooseOwner rejects or its answer is no origin: nothing was written
   * @throws CorruptRecordError (CELLKIT_LEDGER_CORRUPT) when the id's record cannot be read as one; it is left as it is
   * @throws LedgerBusyError (CELLKIT_LEDGER_BUSY) when others held the lock for too long: nothing was written
   * @throws LedgerUnavailableError (CELLKIT_LEDGER_UNAVAILABLE); its `recorded` says whether a record may stand now
   */
  claim(
    id: string,
    body: Uint8Array | string,
    chooseOwner: () => Promise<string>,
    options?: LedgerCallOptions,
  ): Promise<Claim>;

  /** Who an id belongs to; undefined if nobody ever claimed it. Takes no lock. Throws as `claim` for a corrupt record. */
  lookup(id: string, options?: LedgerCallOptions): Promise<Owner | undefined>;

  /**
   * Frees an id whose record is older than the quarantine, and marks a younger one for {@link Ledger.sweep}.
   * Only for ids that can provably never authorize anything again.
   * @returns true if the record is gone; false if it stays, or if there was none
   * @throws NotRetirableError (CELLKIT_LEDGER_NOT_RETIRABLE) unless the ledger was opened with `retirable: true`
   */
  retire(id: string, options: QuarantineOptions): Promise<boolean>;

  /** Removes the marked records that are older than the quarantine; answers how many. Throws as `retire`. */
  sweep(options: QuarantineOptions): Promise<number>;

  /** How many records there are, counted anew. */
  count(options?: LedgerCallOptions): Promise<number>;

  /** Lets running calls end, the choosing of owners included, then frees everything. Calls after it throw LedgerClosedError (CELLKIT_LEDGER_CLOSED). */
  close(): Promise<void>;
}

/** One record as it lies in the store, for people and for moving ledgers. */
export interface LedgerEntry {
  /** The lowercase hex BLAKE3-256 of the id. */
  key: string;
  /** What the record says; undefined when it cannot be read. */
  owner: Owner | undefined;
  /** Why the record cannot be read, or why this is no record at all (a foreign file, for example). */
  problem?: string | undefined;
  /** When the record was last modified, Unix milliseconds. */
  modifiedMs: number;
  /** Whether it is marked for a sweep. */
  marked: boolean;
}

/** What people and programs that only look at a ledger need; nothing of it writes, locks or creates. */
export interface LedgerReader extends AsyncDisposable {
  /** Where it lies, as text for people and logs; without credentials. */
  readonly url: string;
  /** The ledger's name among those of one router. */
  readonly name: string;
  /** Random, made when the ledger was created; undefined for a directory that only routers of the original have used. */
  readonly ledgerId: string | undefined;
  /** As {@link StoredLedger.entries}. */
  entries(options?: LedgerCallOptions): AsyncIterable<LedgerEntry>;
  /** As {@link StoredLedger.entry}. */
  entry(key: string, options?: LedgerCallOptions): Promise<LedgerEntry | undefined>;
  /** Frees everything. Calls after it throw LedgerClosedError (CELLKIT_LEDGER_CLOSED). */
  close(): Promise<void>;
}

/** What an operator can do beside claims. Everything that `open…Ledger` answers has it; routers need only {@link Ledger}. */
export interface StoredLedger extends Ledger, LedgerReader {
  /** Where it lies, as text for people and logs; without credentials. */
  readonly url: string;
  /** The ledger's name among those of one router. */
  readonly name: string;
  /** Random, made when the ledger was created; tells a ledger from an empty one in its place. */
  readonly ledgerId: string;
  /** How many records it may hold; undefined if there is no limit. */
  readonly capacity: number | undefined;

  /** Everything that lies there, in no order, foreign things included. Takes no lock; what is claimed meanwhile may be missing. */
  entries(options?: LedgerCallOptions): AsyncIterable<LedgerEntry>;

  /** One entry by its key (64 lowercase hex digits); undefined if there is none. A corrupt one is answered with its problem. */
  entry(key: string, options?: LedgerCallOptions): Promise<LedgerEntry | undefined>;

  /**
   * Writes a record that was taken from another ledger, durably, and never over one that is there.
   * @returns `added`; `present` if the same binding is there; `conflict` if another one is; `full` at capacity
   */
  restore(
    key: string,
    owner: Owner,
    options?: LedgerCallOptions,
  ): Promise<"added" | "present" | "conflict" | "full">;
}

/** What all stores are opened with. */
export interface LedgerOptions {
  /**
   * Tells several ledgers of one router apart: 1 to 64 of `a-z 0-9 -`. Default `executions`. In a POSIX directory that one is the
   * directory itself and every other name is a subdirectory of it.
   */
  name?: string | undefined;
  /** How many records it may hold at most; 1 or more. Default 100,000 in a POSIX directory, no limit elsewhere. */
  capacity?: number | undefined;
  /** Whether records may be retired at all. Default false; never true for executions. */
  retirable?: boolean | undefined;
  /**
   * Refuse to start where no ledger has been created (LedgerMissingError), so that a missing mount or a wrong address never becomes an
   * empty ledger. Default false: what is missing is created, and marked as created.
   */
  requireExisting?: boolean | undefined;
  /** Where the time comes from, Unix milliseconds; for quarantines. Default `Date.now`. */
  now?: (() => number) | undefined;
}
