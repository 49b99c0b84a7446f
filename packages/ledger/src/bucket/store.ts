/** One ledger's objects in a bucket, with every failure told as a ledger's. */
import { type Bucket, BucketError, type ConditionalWrite, type ListedObject } from "@cellkit/bucket";
import { MAX_RECORD_BYTES } from "../core/record.ts";
import { CorruptRecordError, LedgerError, LedgerUnavailableError } from "../errors.ts";
import type { Owner } from "../ledger.ts";
import { LedgerKeys } from "./ledger-keys.ts";
import { parseStoredObject } from "./stored-object.ts";

/** Whether a write of ours may stand, for the error that ends a call. */
export type Recorded = "no" | "maybe";

/** What lies at a record's key and is no record, nor a stone. */
export interface Corrupt {
  kind: "corrupt";
  problem: string;
  cause?: unknown;
}

/** What a look at a record's key found. */
export type Look =
  | { kind: "absent" }
  | { kind: "retired"; etag: string; bytes: Uint8Array }
  | { kind: "record"; owner: Owner; etag: string; bytes: Uint8Array };

/** The outcome of a conditional write; `settled` if it had to be found out afterwards. */
export interface WriteOutcome {
  applied: boolean;
  settled: boolean;
}

/** What a reader waits with. */
type Signal = AbortSignal | undefined;

/** @see BucketLedger */
export class LedgerStore {
  readonly bucket: Bucket;
  readonly keys: LedgerKeys;
  /** For people; in every error. */
  readonly url: string;

  constructor(bucket: Bucket, name: string) {
    this.bucket = bucket;
    this.keys = new LedgerKeys(name);
    this.url = `${bucket.url.replace(/\/+$/, "")}/${this.keys.folder.replace(/\/$/, "")}`;
  }

  /**
   * Reads what lies at a record's key.
   * @param recorded what to say of our own write if this fails
   * @throws CorruptRecordError, LedgerUnavailableError, the signal's reason
   */
  async look(key: string, signal: Signal, recorded: Recorded = "no"): Promise<Look> {
    const found = await this.read(key, signal, recorded);
    if (found.kind !== "corrupt") return found;
    throw new CorruptRecordError(this.url, key, found.problem, { cause: found.cause });
  }

  /** As {@link look}, but what is corrupt is an answer too. */
  async read(key: string, signal: Signal, recorded: Recorded = "no"): Promise<Look | Corrupt> {
    return this.guard(signal, recorded, async () => {
      try {
        const object = await this.bucket.get(this.keys.record(key), { signal, maxBytes: MAX_RECORD_BYTES });
        if (object === undefined) return { kind: "absent" };
        return { ...parseStoredObject(object.body), etag: object.etag, bytes: object.body };
      } catch (error) {
        const problem = corruptionOf(error);
        if (problem === undefined) throw error;
        return { kind: "corrupt", problem, cause: error };
      }
    });
  }

  /** What a listing says of a record: when it was written, and its ETag; undefined if there is none. */
  async describe(key: string, signal: Signal): Promise<ListedObject | undefined> {
    const wanted = this.keys.record(key);
    for await (const object of this.list(wanted, signal)) return object.key === wanted ? object : undefined;
    return undefined;
  }

  /** All objects whose keys begin with `prefix`, in the order of their keys. */
  async *list(prefix: string, signal: Signal): AsyncGenerator<ListedObject> {
    const objects = this.bucket.list(prefix, { signal })[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await this.guard(signal, "no", () => objects.next());
        if (next.done === true) return;
        yield next.value;
      }
    } finally {
      await objects.return?.();
    }
  }

  /**
   * Makes a write of bytes that nobody else writes and finds out what came of it.
   * @param etag of what must be there; undefined for "nothing"
   */
  async write(
    objectKey: string,
    bytes: Uint8Array,
    etag: string | undefined,
    signal: Signal,
  ): Promise<WriteOutcome> {
    const options = { signal, contentType: "application/json" };
    const write = await this.guard(signal, "no", () =>
      etag === undefined
        ? this.bucket.createIfAbsent(objectKey, bytes, options)
        : this.bucket.replaceIf(objectKey, bytes, etag, options),
    );
    return write.kind === "ambiguous"
      ? { applied: await this.#settle(write, signal), settled: true }
      : { applied: write.kind === "applied", settled: false };
  }

  /** Whether a write whose answer was lost took effect. */
  #settle(write: Extract<ConditionalWrite, { kind: "ambiguous" }>, signal: Signal): Promise<boolean> {
    return this.guard(signal, "maybe", async () => {
      // Bytes that are visible but perhaps not on the disk: reading them back would prove nothing.
      if (codeOf(write.cause) === "CELLKIT_BUCKET_UNDECIDED") throw write.cause;
      return (await write.settle({ signal })).kind === "applied";
    });
  }

  /** Does one thing to the bucket; what it throws becomes a ledger's error. */
  async guard<T>(signal: Signal, recorded: Recorded, work: () => Promise<T>): Promise<T> {
    try {
      signal?.throwIfAborted();
      return await work();
    } catch (error) {
      if (error instanceof LedgerError) throw error;
      signal?.throwIfAborted();
      const reason = error instanceof Error ? error.message : String(error);
      throw new LedgerUnavailableError(this.url, reason, recorded, { cause: error });
    }
  }
}

/** Why what lies there can never be a record; undefined if the failure says nothing of it. */
function corruptionOf(error: unknown): string | undefined {
  const code = codeOf(error);
  if (code === "CELLKIT_BUCKET_TOO_LARGE") return `it has more than ${MAX_RECORD_BYTES} bytes`;
  if (code === "CELLKIT_BUCKET_CORRUPT") return "the object's file is damaged";
  return undefined;
}

/** By its code, since the caller's bucket may come from another copy of its package. */
function codeOf(error: unknown): string | undefined {
  if (error instanceof BucketError) return error.code;
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
