/** The nodes of a fleet, as their records in the store tell. Reading is bounded, shared and kept for a moment. */
import { NodeRecordError, NoLiveNodeError, PeerOptionError } from "./errors.ts";
import type { FleetStore } from "./fleet-store.ts";
import {
  isLive,
  maxNodeRecordBytes,
  type NodeRecord,
  nodeRecordKey,
  nodeRecordPrefix,
  parseNodeRecord,
} from "./node-record.ts";

/** Nodes that stopped without a word leave their record behind, so a listing is longer than a fleet. */
const maxListed = 1_000_000;

/** Most records that can be asked for. */
const mostRecords = 10_000;

const recordKeyForm = /^nodes\/[A-Za-z0-9_.-]{1,128}\.json$/;

/** Reads at the same time. */
const readers = 16;

/** What the records say, at one moment. */
export interface NodeListing {
  /** Records in force, by node name. */
  readonly live: readonly NodeRecord[];
  /** Records whose time has passed: of nodes that died, or whose clock is behind ours. */
  readonly expired: readonly NodeRecord[];
  /** Records that cannot be read. Such a node may well run. */
  readonly unreadable: ReadonlyArray<{ readonly key: string; readonly reason: string }>;
  /** There are more records than were read; the ones left out are the oldest, as far as the store tells. */
  readonly truncated: boolean;
}

/** Options of {@link NodeDirectory}. */
export interface NodeDirectoryOptions {
  /** How old an answer may be, 0 to 1,000. @default 1000 */
  cacheMs?: number;
  /** Records that are read at most, 1 to 10,000. @default 1000 */
  maxRecordsCount?: number;
  /** Milliseconds since the Unix epoch. @default Date.now */
  clock?: () => number;
}

/** Which of the live nodes to pick. */
export interface PickOptions {
  /** Names that are no choice: the caller's own, and those that just failed. */
  readonly except?: ReadonlySet<string> | undefined;
  /** Only nodes that speak this generation of the protocol. A node must not be called in another one. */
  readonly peerProtocol?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Reads `nodes/`. Whoever asks while a reading goes on shares it. Holds no resource. */
export class NodeDirectory {
  readonly #store: FleetStore;
  readonly #cacheMs: number;
  readonly #maxRecords: number;
  readonly #clock: () => number;
  /** What was read before, by key: a record with the same ETag is not read again. */
  #known = new Map<string, Known>();
  #reading: Promise<Reading> | undefined;
  #last: Reading | undefined;
  #next = 0;

  /** @throws PeerOptionError (CELLKIT_PEER_OPTION) */
  constructor(store: FleetStore, options: NodeDirectoryOptions = {}) {
    const { cacheMs = 1_000, maxRecordsCount = 1_000, clock = Date.now } = options;
    if (!(cacheMs >= 0 && cacheMs <= 1_000)) throw new PeerOptionError("cacheMs", "must be 0 to 1000");
    if (!Number.isInteger(maxRecordsCount) || maxRecordsCount < 1 || maxRecordsCount > mostRecords)
      throw new PeerOptionError("maxRecordsCount", `must be a whole number from 1 to ${mostRecords}`);
    this.#store = store;
    this.#cacheMs = cacheMs;
    this.#maxRecords = maxRecordsCount;
    this.#clock = clock;
  }

  /** All records. @throws what the store throws, and the signal's reason */
  async list(options: { signal?: AbortSignal | undefined } = {}): Promise<NodeListing> {
    const { records, unreadable, truncated } = await this.#read(options.signal);
    const nowMs = this.#clock();
    return {
      live: records.filter((record) => isLive(record, nowMs)),
      expired: records.filter((record) => !isLive(record, nowMs)),
      unreadable,
      truncated,
    };
  }

  /**
   * The record of one node, live or not; undefined when there is none. Where not all records were read it is read by
   * itself.
   * @throws NodeRecordError (CELLKIT_PEER_NODE_RECORD) when it cannot be read, and what the store throws
   */
  async find(
    node: string,
    options: { signal?: AbortSignal | undefined } = {},
  ): Promise<NodeRecord | undefined> {
    const { records, unreadable, truncated } = await this.#read(options.signal);
    const key = nodeRecordKey(node);
    const bad = unreadable.find((each) => each.key === key);
    if (bad !== undefined) throw new NodeRecordError(key, bad.reason);
    const record = records.find((each) => each.node === node);
    if (record !== undefined || !truncated || !recordKeyForm.test(key)) return record;
    const result = (await this.#readRecord(key, options.signal))?.result;
    if (typeof result === "string") throw new NodeRecordError(key, result);
    return result;
  }

  /** Same as {@link find}, undefined when the record is not in force. */
  async findLive(
    node: string,
    options: { signal?: AbortSignal | undefined } = {},
  ): Promise<NodeRecord | undefined> {
    const record = await this.find(node, options);
    return record !== undefined && isLive(record, this.#clock()) ? record : undefined;
  }

  /**
   * Any live node, another one each time; one that starts or is being stopped only when there is no other.
   * @throws NoLiveNodeError (CELLKIT_PEER_NO_LIVE_NODE) when none fits, and what the store throws
   */
  async pick(options: PickOptions = {}): Promise<NodeRecord> {
    const { except, peerProtocol, signal } = options;
    const { live } = await this.list({ signal });
    const fitting = live.filter(
      (record) =>
        record.addr !== "" &&
        !except?.has(record.node) &&
        (peerProtocol === undefined || record.peerProtocol === peerProtocol),
    );
    const serving = fitting.filter((record) => record.serving !== false);
    const choice = serving.length > 0 ? serving : fitting;
    const picked = choice[this.#next % Math.max(choice.length, 1)];
    this.#next = (this.#next + 1) % mostRecords;
    if (picked === undefined) throw new NoLiveNodeError(live.length, peerProtocol);
    return picked;
  }

  /** Forgets the last answer, so that the next question goes to the store: after a node of it turned out gone. */
  forget(): void {
    this.#last = undefined;
  }

  async #read(signal: AbortSignal | undefined): Promise<Reading> {
    signal?.throwIfAborted();
    if (this.#last !== undefined && performance.now() - this.#last.atMs < this.#cacheMs) return this.#last;
    // Not bound to one caller's signal: others may wait for the same reading, and the store bounds each call.
    this.#reading ??= this.#readStore().finally(() => {
      this.#reading = undefined;
    });
    return await orAborted(this.#reading, signal);
  }

  async #readStore(): Promise<Reading> {
    const atMs = performance.now();
    let listed: Listed[] = [];
    let truncated = false;
    let listedCount = 0;
    for await (const { key, etag, modifiedMs = 0 } of this.#store.list(nodeRecordPrefix)) {
      if (!recordKeyForm.test(key)) continue;
      listedCount += 1;
      if (listedCount > maxListed) break;
      listed.push({ key, etag, modifiedMs });
      // A live node writes its record every few seconds, so the newest are never those of dead ones.
      if (listed.length >= this.#maxRecords * 2) listed = newest(listed, this.#maxRecords);
    }
    if (listedCount > this.#maxRecords) truncated = true;
    listed = newest(listed, this.#maxRecords);
    const known = new Map<string, Known>();
    const queue = listed.values();
    const reader = async (): Promise<void> => {
      for (const entry of queue) {
        const before = this.#known.get(entry.key);
        const fresh = before !== undefined && entry.etag !== undefined && before.etag === entry.etag;
        const read = fresh ? before : await this.#readRecord(entry.key);
        if (read !== undefined) known.set(entry.key, read);
      }
    };
    await Promise.all(Array.from({ length: readers }, reader));
    this.#known = known;
    const records: NodeRecord[] = [];
    const unreadable: Array<{ key: string; reason: string }> = [];
    for (const [key, { result }] of known) {
      if (typeof result === "string") unreadable.push({ key, reason: result });
      else records.push(result);
    }
    records.sort((a, b) => (a.node < b.node ? -1 : 1));
    this.#last = { atMs, records, unreadable, truncated };
    return this.#last;
  }

  /** Undefined when it went away since it was listed. What the store throws, but for one record's size, passes through. */
  async #readRecord(key: string, signal?: AbortSignal | undefined): Promise<Known | undefined> {
    let object: Awaited<ReturnType<FleetStore["get"]>>;
    try {
      object = await this.#store.get(key, { maxBytes: maxNodeRecordBytes, signal });
    } catch (error) {
      if (!isTooLarge(error)) throw error;
      return { etag: "", result: `has over ${maxNodeRecordBytes} bytes` };
    }
    if (object === undefined) return undefined;
    try {
      return { etag: object.etag, result: parseNodeRecord(key, object.body) };
    } catch (error) {
      if (error instanceof NodeRecordError) return { etag: object.etag, result: error.reason };
      throw error;
    }
  }
}

interface Listed {
  readonly key: string;
  readonly etag: string | undefined;
  readonly modifiedMs: number;
}

function newest(listed: Listed[], count: number): Listed[] {
  if (listed.length <= count) return listed;
  return listed.sort((a, b) => b.modifiedMs - a.modifiedMs).slice(0, count);
}

interface Known {
  readonly etag: string;
  /** The record, or why there is none. */
  readonly result: NodeRecord | string;
}

interface Reading {
  readonly atMs: number;
  readonly records: readonly NodeRecord[];
  readonly unreadable: ReadonlyArray<{ key: string; reason: string }>;
  readonly truncated: boolean;
}

/** As a bucket of @cellkit/bucket says it; other stores' own ways to refuse a size end the reading. */
function isTooLarge(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "CELLKIT_BUCKET_TOO_LARGE";
}

async function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await promise;
  let abort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    if (abort !== undefined) signal.removeEventListener("abort", abort);
  }
}
