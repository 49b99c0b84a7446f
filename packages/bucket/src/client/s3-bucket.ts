/** A bucket in an S3 store, through the AWS SDK. Reads may be repeated by the SDK; every write is one request. */
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
import { keyBytes } from "../core/object-key.ts";
import {
  BucketClosedError,
  BucketUnreachableError,
  ObjectRangeError,
  ObjectTooLargeError,
} from "../errors.ts";
import type { ResolvedOptions } from "../options.ts";
import { type Attempt, writeConditionally } from "./conditional-write.ts";
import { createS3Clients, type S3Clients } from "./s3-clients.ts";
import { type S3Failure, s3Failure } from "./s3-failure.ts";

/** @see openBucket */
export class S3Bucket implements Bucket {
  readonly url: string;
  readonly #bucket: string;
  readonly #prefix: string;
  readonly #options: ResolvedOptions;
  #clients: Promise<S3Clients> | undefined;
  #closed: Promise<void> | undefined;

  constructor(url: string, location: { bucket: string; prefix: string }, options: ResolvedOptions) {
    this.url = url;
    this.#bucket = location.bucket;
    this.#prefix = location.prefix;
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
    const { range, ifNoneMatch, maxBytes = this.#options.maxBytes } = options;
    const Key = this.#fullKey(key);
    if (range?.end !== undefined && range.end <= range.start) {
      throw new ObjectRangeError(key, `[${range.start}, ${range.end})`);
    }
    const { sdk, reader } = await this.#open();
    const signal = this.#deadline(options.signal, this.#options.readAttemptCount);
    try {
      const answer = await reader.send(
        new sdk.GetObjectCommand({
          Bucket: this.#bucket,
          Key,
          ...(ifNoneMatch === undefined ? {} : { IfNoneMatch: ifNoneMatch }),
          ...(range === undefined
            ? {}
            : { Range: `bytes=${range.start}-${range.end === undefined ? "" : range.end - 1}` }),
        }),
        { abortSignal: signal },
      );
      const body = await readBody(answer.Body as AsyncIterable<Uint8Array>, key, maxBytes, signal);
      const total = /\/(\d+)$/.exec(answer.ContentRange ?? "")?.[1];
      return { body, etag: answer.ETag ?? "", sizeBytes: total === undefined ? body.length : Number(total) };
    } catch (error) {
      if (error instanceof ObjectTooLargeError) throw error;
      options.signal?.throwIfAborted();
      const failure = s3Failure(this.url, error, this.#options.endpoint);
      if (failure.kind === "condition") return undefined;
      if (failure.kind === "not-modified") return { notModified: true, etag: ifNoneMatch ?? "" };
      if (failure.kind === "range") {
        throw new ObjectRangeError(key, `[${range?.start}, ${range?.end ?? "end"})`, { cause: error });
      }
      throw failure.error;
    }
  }

  async put(key: string, body: Uint8Array | string, options: PutOptions = {}): Promise<{ etag: string }> {
    options.signal?.throwIfAborted();
    const attempt = await this.#send(key, toBody(body), {}, options, options.signal);
    if (attempt.kind === "applied") return { etag: attempt.etag };
    if (attempt.kind === "rejected") {
      throw new BucketUnreachableError(this.url, "a condition was refused that was not set");
    }
    options.signal?.throwIfAborted();
    throw attempt.cause;
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
    options.signal?.throwIfAborted();
    const Key = this.#fullKey(key);
    const { sdk, writer } = await this.#open();
    try {
      await writer.send(new sdk.DeleteObjectCommand({ Bucket: this.#bucket, Key }), {
        abortSignal: this.#deadline(options.signal, 1),
      });
    } catch (error) {
      options.signal?.throwIfAborted();
      const failure = s3Failure(this.url, error, this.#options.endpoint);
      if (failure.kind !== "condition") throw errorOf(failure, this.url);
    }
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
    const { delimiter, startAfter, signal } = options;
    const { sdk, reader } = await this.#open();
    const strip = (key: string) => key.slice(this.#prefix.length);
    let token: string | undefined;
    do {
      signal?.throwIfAborted();
      const command = new sdk.ListObjectsV2Command({
        Bucket: this.#bucket,
        Prefix: this.#prefix + prefix,
        ...(delimiter === undefined ? {} : { Delimiter: delimiter }),
        ...(startAfter === undefined ? {} : { StartAfter: this.#prefix + startAfter }),
        ...(token === undefined ? {} : { ContinuationToken: token }),
      });
      const abortSignal = this.#deadline(signal, this.#options.readAttemptCount);
      const page = await reader.send(command, { abortSignal }).catch((error: unknown) => {
        signal?.throwIfAborted();
        throw errorOf(s3Failure(this.url, error, this.#options.endpoint), this.url);
      });
      const objects = (page.Contents ?? []).map((object) => ({
        key: strip(object.Key ?? ""),
        etag: object.ETag ?? "",
        sizeBytes: object.Size ?? 0,
        modifiedMs: object.LastModified?.getTime() ?? 0,
      }));
      const prefixes = (page.CommonPrefixes ?? []).map((common) => ({ prefix: strip(common.Prefix ?? "") }));
      yield* prefixes.length === 0 ? objects : [...objects, ...prefixes].sort(byBytes);
      token = page.IsTruncated ? page.NextContinuationToken : undefined;
    } while (token !== undefined);
  }

  close(): Promise<void> {
    this.#closed ??= (async () => {
      const clients = await this.#clients?.catch(() => undefined);
      clients?.reader.destroy();
      clients?.writer.destroy();
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
    const condition = expectedEtag === undefined ? { IfNoneMatch: "*" } : { IfMatch: expectedEtag };
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

  /** One PUT. */
  async #send(
    key: string,
    body: Uint8Array,
    condition: { IfNoneMatch?: string; IfMatch?: string },
    options: PutOptions,
    signal: AbortSignal | undefined,
  ): Promise<Attempt> {
    const Key = this.#fullKey(key);
    const { sdk, writer } = await this.#open();
    try {
      const command = new sdk.PutObjectCommand({
        Bucket: this.#bucket,
        Key,
        Body: body,
        ContentType: options.contentType ?? "application/octet-stream",
        ...condition,
      });
      const answer = await writer.send(command, { abortSignal: this.#deadline(signal, 1) });
      return { kind: "applied", etag: answer.ETag ?? "" };
    } catch (error) {
      const failure = s3Failure(this.url, error, this.#options.endpoint);
      if (failure.kind === "condition") return { kind: "rejected" };
      if (failure.kind === "conflict") return { kind: "conflict", cause: failure.error };
      return { kind: failure.kind === "failed" ? "failed" : "unknown", cause: errorOf(failure, this.url) };
    }
  }

  #open(): Promise<S3Clients> {
    if (this.#closed !== undefined) return Promise.reject(new BucketClosedError(this.url));
    this.#clients ??= createS3Clients(this.#options);
    return this.#clients;
  }

  #fullKey(key: string): string {
    keyBytes(key);
    keyBytes(this.#prefix + key);
    return this.#prefix + key;
  }

  #deadline(signal: AbortSignal | undefined, attemptCount: number): AbortSignal {
    const deadline = AbortSignal.timeout(this.#options.timeoutMs * attemptCount);
    return signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
  }
}

function errorOf(failure: S3Failure, url: string): Error {
  return "error" in failure
    ? failure.error
    : new BucketUnreachableError(url, `unexpected answer: ${failure.kind}`);
}

function toBody(body: Uint8Array | string): Uint8Array {
  return typeof body === "string" ? Buffer.from(body, "utf8") : body;
}

function byBytes(a: ListedObject | ListedPrefix, b: ListedObject | ListedPrefix): number {
  const text = (item: ListedObject | ListedPrefix) => Buffer.from("key" in item ? item.key : item.prefix);
  return Buffer.compare(text(a), text(b));
}

async function readBody(
  body: AsyncIterable<Uint8Array>,
  key: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    signal.throwIfAborted();
    length += piece.length;
    if (length > maxBytes) throw new ObjectTooLargeError(key, maxBytes);
    pieces.push(piece);
  }
  return new Uint8Array(Buffer.concat(pieces));
}
