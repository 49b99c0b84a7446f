/** A bucket in a directory of this machine. */
import type {
  Bucket,
  CallOptions,
  ConditionalWrite,
  GetOptions,
  ListedObject,
  ListedPrefix,
  ListOptions,
  NotModified,
  PutOptions,
  ReadAnswer,
  StoredObject,
} from "../bucket.ts";
import { fromBytes, keyBytes, toBytes } from "../core/object-key.ts";
import { BucketClosedError, ObjectRangeError, ObjectTooLargeError, UndecidedWriteError } from "../errors.ts";
import type { ResolvedOptions } from "../options.ts";
import { afterKey, listing } from "../store/listing.ts";
import { type Condition, ObjectStore } from "../store/object-store.ts";
import { type Attempt, writeConditionally } from "./conditional-write.ts";

/** @see openBucket */
export class FileBucket implements Bucket {
  readonly url: string;
  readonly #directory: string;
  readonly #options: ResolvedOptions;
  #store: Promise<ObjectStore> | undefined;
  #closed: Promise<void> | undefined;

  constructor(url: string, directory: string, options: ResolvedOptions) {
    this.url = url;
    this.#directory = directory;
    this.#options = options;
  }

  get<Options extends GetOptions = CallOptions>(
    key: string,
    options?: Options,
  ): Promise<ReadAnswer<Options>> {
    // Without ifNoneMatch nothing makes it NotModified.
    return this.#read(key, options ?? {}) as Promise<ReadAnswer<Options>>;
  }

  async #read(key: string, options: GetOptions): Promise<StoredObject | NotModified | undefined> {
    const { signal, range, ifNoneMatch, maxBytes = this.#options.maxBytes } = options;
    signal?.throwIfAborted();
    const object = await (await this.#open()).open(key);
    if (object === undefined) return undefined;
    try {
      const { sizeBytes } = object.head;
      const etag = quoted(object.head.etag);
      if (etag === ifNoneMatch) return { notModified: true, etag };
      const start = range?.start ?? 0;
      const end = Math.min(range?.end ?? sizeBytes, sizeBytes);
      if (range !== undefined && (start < 0 || start >= end)) {
        throw new ObjectRangeError(key, `[${start}, ${range.end ?? "end"})`);
      }
      if (end - start > maxBytes) throw new ObjectTooLargeError(key, maxBytes);
      const pieces: Uint8Array[] = [];
      for await (const piece of object.read(start, end)) {
        signal?.throwIfAborted();
        pieces.push(piece);
      }
      return { body: new Uint8Array(Buffer.concat(pieces)), etag, sizeBytes };
    } finally {
      object.close();
    }
  }

  async put(key: string, body: Uint8Array | string, options: PutOptions = {}): Promise<{ etag: string }> {
    options.signal?.throwIfAborted();
    const attempt = await this.#send(key, toBody(body), { kind: "none" }, options, options.signal);
    if (attempt.kind === "applied") return { etag: attempt.etag };
    throw "cause" in attempt ? attempt.cause : new UndecidedWriteError(this.url);
  }

  createIfAbsent(
    key: string,
    body: Uint8Array | string,
    options: PutOptions = {},
  ): Promise<ConditionalWrite> {
    return this.#write(key, toBody(body), undefined, options);
  }

  replaceIf(
    key: string,
    body: Uint8Array | string,
    etag: string,
    options: PutOptions = {},
  ): Promise<ConditionalWrite> {
    return this.#write(key, toBody(body), etag, options);
  }

  async delete(key: string, options: CallOptions = {}): Promise<void> {
    await (await this.#open()).delete(key, { kind: "none" }, options.signal);
  }

  list(
    prefix: string,
    options: ListOptions & { delimiter: string },
  ): AsyncIterable<ListedObject | ListedPrefix>;
  list(
    prefix: string,
    options?: CallOptions & { startAfter?: string | undefined },
  ): AsyncIterable<ListedObject>;
  list(prefix: string, options: ListOptions = {}): AsyncIterable<ListedObject | ListedPrefix> {
    return this.#list(prefix, options);
  }

  async *#list(prefix: string, options: ListOptions): AsyncGenerator<ListedObject | ListedPrefix> {
    const { delimiter = "", startAfter, signal } = options;
    signal?.throwIfAborted();
    const store = await this.#open();
    const query = {
      prefix: toBytes(prefix),
      delimiter: toBytes(delimiter),
      from: startAfter === undefined ? "" : afterKey(toBytes(startAfter)),
    };
    for await (const item of listing(store, query)) {
      signal?.throwIfAborted();
      if (item.kind === "prefix") {
        yield { prefix: fromBytes(item.prefix) ?? "" };
        continue;
      }
      const { etag, sizeBytes, modifiedMs } = item.head;
      yield { key: fromBytes(item.key) ?? "", etag: quoted(etag), sizeBytes, modifiedMs };
    }
  }

  close(): Promise<void> {
    this.#closed ??= (async () => {
      const store = await this.#store?.catch(() => undefined);
      await store?.close();
    })();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #write(
    key: string,
    body: Uint8Array,
    expectedEtag: string | undefined,
    options: PutOptions,
  ): Promise<ConditionalWrite> {
    const condition: Condition =
      expectedEtag === undefined
        ? { kind: "absent" }
        : { kind: "etag", etags: [expectedEtag.replace(/^"(.*)"$/, "$1")] };
    return writeConditionally(
      {
        bucket: this,
        key,
        body,
        expectedEtag,
        settleTimeoutMs: this.#options.settleTimeoutMs,
        attempt: (signal) => this.#send(key, body, condition, options, signal),
      },
      options.signal,
    );
  }

  async #send(
    key: string,
    body: Uint8Array,
    condition: Condition,
    options: PutOptions,
    signal: AbortSignal | undefined,
  ): Promise<Attempt> {
    try {
      keyBytes(key);
      const store = await this.#open();
      if ((await store.precheck(key, condition)).kind !== "applied") return { kind: "rejected" };
      const staged = store.stage();
      try {
        await store.guarded(() => staged.write(body));
        const headers = { "content-type": options.contentType ?? "application/octet-stream" };
        const { etag } = staged.finish(headers);
        const outcome = await store.put(key, staged, condition, signal);
        return outcome.kind === "applied" ? { kind: "applied", etag: quoted(etag) } : { kind: "rejected" };
      } finally {
        await staged.discard();
      }
    } catch (error) {
      return { kind: error instanceof UndecidedWriteError ? "unknown" : "failed", cause: error as Error };
    }
  }

  #open(): Promise<ObjectStore> {
    if (this.#closed !== undefined) return Promise.reject(new BucketClosedError(this.url));
    this.#store ??= ObjectStore.open(this.#directory).catch((error: unknown) => {
      this.#store = undefined;
      throw error;
    });
    return this.#store;
  }
}

function quoted(etag: string): string {
  return `"${etag}"`;
}

function toBody(body: Uint8Array | string): Uint8Array {
  return typeof body === "string" ? Buffer.from(body, "utf8") : body;
}
