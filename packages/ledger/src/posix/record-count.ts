/**
 * How many records there are, without counting them for each claim.
 *
 * A count is kept with the directory's time. Under the lock, an unchanged time says that nobody else changed the
 * directory since our own last change, so that the count holds. Three things are allowed for:
 * - Times may stand still for a tick of the kernel (1–10 ms), so a claim of another replica in the same tick as ours is not
 *   seen. The count is used only while it leaves a margin, and while there are claims, the records are counted anew
 *   in the background, at most once a second.
 * - If others did change the directory, they say how many records there are now (see `count-hint.ts`) if they are ours. If
 *   they are originals, the count is as good as the last counting is young: it is used only while even 5,000 claims a
 *   second since then would leave the margin.
 * - Where times of directories may be cached (network file systems), every group of claims counts, unless
 *   `trustDirectoryTimes` says otherwise.
 * Else the records are counted under the lock, and the capacity is exact.
 */
import type { BigIntStats } from "node:fs";
import type { CountHint } from "./count-hint.ts";
import { diskFailure, quietly } from "./disk-failure.ts";
import { countsAsRecord, type LedgerDirectory } from "./ledger-directory.ts";
import type { PosixLedgerListener } from "./ledger-event.ts";

/** As long as the cached count is this far below the capacity, what it does not see does no harm. */
const MARGIN_COUNT = 1_000;
/** More durable claims than other replicas make in a millisecond. */
const OTHERS_COUNT_PER_MS = 5;
/** While there are claims, the records are counted in the background with pauses of this length... */
const RESCAN_PAUSE_MS = 1_000;
/** ...or of this many times as long as the counting took, if that is more. */
const RESCAN_PAUSE_FACTOR = 10;
/** A directory's time that is older than this belongs to no tick that still runs. */
const SETTLED_MS = 100;

/** The outcome of one counting. */
interface Counted {
  /** Entries seen. */
  seen: number;
  /** What may be there at most: those seen, and those that we added meanwhile. */
  count: number;
  /** By `performance.now()`: when the counting began. */
  sinceMs: number;
  /** Whether others have changed the directory since then. */
  changed: boolean;
  /** Whether nothing at all changed meanwhile, nor can have in the same tick. */
  settled: boolean;
}

/** The number of records of one ledger, of which `capacity` may be there. */
export class RecordCount {
  readonly #directory: LedgerDirectory;
  readonly #capacity: number;
  readonly #trusted: boolean;
  readonly #hint: CountHint;
  readonly #emit: PosixLedgerListener;
  #known: Counted | undefined;
  /** The directory's time as we last saw or caused it. */
  #timeNs: bigint | undefined;
  /** Countings beside the lock: the one that runs, and the one that begins after it, for those who came meanwhile. */
  #running: { promise: Promise<Counted>; counted: Counted } | undefined;
  #next: Promise<Counted> | undefined;
  #rescanAtMs = 0;
  /** What the last counting saw: never so much less is there that a hint below it could be true. */
  #lastSeenCount = 0;
  /** Odd while we change the directory ourselves: nobody else can then, and its time says nothing. */
  #changes = 0;

  constructor(
    directory: LedgerDirectory,
    options: { capacity: number; trusted: boolean; hint: CountHint; emit: PosixLedgerListener },
  ) {
    this.#directory = directory;
    this.#capacity = options.capacity;
    this.#trusted = options.trusted;
    this.#hint = options.hint;
    this.#emit = options.emit;
  }

  /** Counts for the first time, beside the lock, and shows every name on the way. @throws LedgerUnavailableError */
  async countAtStart(visit: (name: string) => void): Promise<void> {
    await this.#start(visit);
  }

  /** Whether a new id would find no room, without the lock; cheap unless the ledger is nearly full. */
  async isFull(): Promise<boolean> {
    const known = this.#known;
    if (known !== undefined && this.#leavesMargin(known, 0, true)) return false;
    await this.#look();
    if (this.#trusted && known !== undefined) {
      if (!known.changed && this.#leavesMargin(known, 0, false)) return false;
      // At the capacity nothing is added any more, so that this is how a full ledger answers.
      if (!known.changed && known.settled && known.seen >= this.#capacity) return true;
    }
    return (await this.#countBeside()).seen >= this.#capacity;
  }

  /**
   * How many of `wanted` records may be added. Under the lock.
   * @param status of the directory, a moment ago
   */
  async room(wanted: number, status: BigIntStats): Promise<number> {
    this.#see(status);
    const known = this.#trusted ? await this.#learn(status) : undefined;
    if (known !== undefined && this.#leavesMargin(known, wanted, known.changed)) return wanted;
    const counted = this.#begin(status);
    await this.#count(counted, true);
    counted.changed = false;
    this.#known = counted;
    return Math.max(0, Math.min(wanted, this.#capacity - counted.seen));
  }

  /**
   * Says that we are about to add or remove records. Under the lock; {@link endChange} or {@link forget} ends it.
   * @param status of the directory, a moment ago
   */
  beginChange(status: BigIntStats): void {
    this.#see(status);
    this.#changes += 1;
  }

  /**
   * Says that we added records, or removed some (negative).
   * @param status of the directory, after that
   */
  async endChange(added: number, status: BigIntStats): Promise<void> {
    this.#changes += 1;
    this.#timeNs = status.mtimeNs;
    for (const counted of [this.#known, this.#running?.counted]) {
      if (counted === undefined) continue;
      counted.settled = false;
      // A counting that runs may have seen what is removed now, or not.
      if (added > 0 || counted === this.#known) counted.count += added;
    }
    if (this.#trusted && this.#known?.changed === false)
      await this.#hint.write(this.#known.count, status.mtimeNs);
  }

  /** Forgets the count: something went wrong between a change and what would have been said of it. */
  forget(): void {
    this.#known = undefined;
    if (this.#changes % 2 === 1) this.#changes += 1;
  }

  /** Counts in the background, if it is time. After a group of claims. */
  rescanIfDue(): void {
    if (!this.#trusted || this.#running !== undefined || performance.now() < this.#rescanAtMs) return;
    // Who needs the count next learns of the failure then.
    this.#countBeside().catch(() => this.forget());
  }

  /**
   * Counts beside the lock, from now on or later.
   * @throws LedgerUnavailableError
   */
  #countBeside(): Promise<Counted> {
    if (this.#running === undefined) return this.#start();
    this.#next ??= quietly(this.#running.promise).then(() => {
      this.#next = undefined;
      return this.#start();
    });
    return this.#next;
  }

  async #start(visit?: (name: string) => void): Promise<Counted> {
    const status = await this.#look();
    if (this.#running !== undefined) return this.#countBeside();
    const counted = this.#begin(status);
    const promise = this.#count(counted, false, visit);
    this.#running = { promise, counted };
    try {
      await promise;
      if (this.#known === undefined || this.#known.sinceMs < counted.sinceMs) this.#known = counted;
    } finally {
      this.#running = undefined;
      const nowMs = performance.now();
      this.#rescanAtMs = nowMs + Math.max(RESCAN_PAUSE_MS, RESCAN_PAUSE_FACTOR * (nowMs - counted.sinceMs));
    }
    return counted;
  }

  /** Waits for countings that run. */
  async close(): Promise<void> {
    await quietly(Promise.resolve(this.#running?.promise));
    await quietly(Promise.resolve(this.#next));
    await this.#hint.close();
  }

  /** What is known of the count, and from others of ours if they changed it. Under the lock. */
  async #learn({ mtimeNs }: BigIntStats): Promise<Counted | undefined> {
    if (this.#known?.changed === false) return this.#known;
    const hinted = await this.#hint.read(mtimeNs);
    if (hinted === undefined) return this.#known;
    const count = Math.max(hinted, this.#lastSeenCount);
    this.#known = { seen: 0, count, sinceMs: performance.now(), changed: false, settled: false };
    return this.#known;
  }

  #begin({ mtimeMs }: BigIntStats): Counted {
    const settled = Math.abs(Date.now() - Number(mtimeMs)) >= SETTLED_MS;
    return { seen: 0, count: 0, sinceMs: performance.now(), changed: false, settled };
  }

  async #count(counted: Counted, underLock: boolean, visit?: (name: string) => void): Promise<Counted> {
    // Under the lock others wait, and to know that it is full is enough.
    const limit = underLock ? this.#capacity : Number.POSITIVE_INFINITY;
    counted.seen = await countRecords(this.#directory, { limit, visit });
    counted.count += counted.seen;
    this.#lastSeenCount = counted.seen;
    const scanMs = performance.now() - counted.sinceMs;
    this.#emit({ kind: "scan", underLock, scanMs, count: counted.seen, capacity: this.#capacity });
    return counted;
  }

  /** Looks at the directory without the lock. */
  async #look(): Promise<BigIntStats> {
    const changes = this.#changes;
    const status = await this.#directory.check();
    // While we changed it ourselves, its time was ours; the next look under the lock sees what others do.
    if (changes === this.#changes && changes % 2 === 0) this.#see(status);
    return status;
  }

  #see({ mtimeNs }: BigIntStats): void {
    if (mtimeNs === this.#timeNs) return;
    this.#timeNs = mtimeNs;
    for (const counted of [this.#known, this.#running?.counted]) {
      if (counted === undefined) continue;
      counted.changed = true;
      counted.settled = false;
    }
  }

  #leavesMargin(known: Counted, wanted: number, changed: boolean): boolean {
    const byOthers = changed ? OTHERS_COUNT_PER_MS * (performance.now() - known.sinceMs) : 0;
    return known.count + wanted + byOthers + MARGIN_COUNT <= this.#capacity;
  }
}

/**
 * Counts what the original counts: entries whose extension is `json`.
 * @param options `limit` ends the counting there; `visit` sees every name
 * @throws LedgerUnavailableError
 */
export async function countRecords(
  directory: LedgerDirectory,
  options: {
    limit?: number;
    signal?: AbortSignal | undefined;
    visit?: ((name: string) => void) | undefined;
  } = {},
): Promise<number> {
  const { limit = Number.POSITIVE_INFINITY, signal, visit } = options;
  let count = 0;
  try {
    await directory.calls.eachName(directory.path, (name) => {
      signal?.throwIfAborted();
      visit?.(name);
      if (countsAsRecord(name)) count += 1;
      return count < limit;
    });
  } catch (error) {
    signal?.throwIfAborted();
    throw diskFailure(directory.url, "list its directory", error, "no");
  }
  return count;
}
