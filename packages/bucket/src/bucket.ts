/** The interface of a bucket, whatever stores it. */

/** An object as it was read. */
export interface StoredObject {
  /** The content, or the part of it that `range` asked for. */
  body: Uint8Array;
  /** Opaque; changes whenever the content changes (and only then). Hand it to {@link Bucket.replaceIf} as it is. */
  etag: string;
  /** Of the whole object, also when a range was read. */
  sizeBytes: number;
}

/** The answer to a read with `ifNoneMatch` when the object still has that ETag. */
export interface NotModified {
  notModified: true;
  etag: string;
}

/** One object of a listing. */
export interface ListedObject {
  /** Relative to the bucket's prefix, as all keys. */
  key: string;
  etag: string;
  sizeBytes: number;
  /** When it was written, in milliseconds since the Unix epoch, by the store's clock. */
  modifiedMs: number;
}

/** What all keys up to a delimiter have in common; stands for all of them. */
export interface ListedPrefix {
  /** Ends with the delimiter. */
  prefix: string;
}

/** A conditional write that took effect. */
export interface Applied {
  kind: "applied";
  /** Of what was written. */
  etag: string;
}

/** A conditional write whose condition did not hold: nothing was changed. */
export interface Rejected {
  kind: "rejected";
}

/**
 * A conditional write that may or may not have taken effect, now or still to come: the request may have been sent and
 * no answer tells. Never treat it as a failure, never repeat it blindly: call `settle`.
 */
export interface Ambiguous {
  kind: "ambiguous";
  /** What stood in the way of an answer. */
  cause: Error;
  /**
   * Finds out. Reads the key back: our bytes there, then `applied`; something that rules our write out, then
   * `rejected`. While neither is so (the key is as it was before, and a delayed request might still change it) it sends
   * the same conditional write again, which can take effect once at most. Pauses and goes on while the store cannot be
   * reached, until `settleTimeoutMs` or the signal ends it.
   *
   * What it cannot tell: bytes equal to ours that somebody else wrote count as ours, so give records a unique content
   * where that matters; and `rejected` says that our bytes are not there *now* (they may have been, and been replaced).
   * @throws UnsettledWriteError (CELLKIT_BUCKET_UNSETTLED), the signal's reason, or what makes reading senseless
   *   (CELLKIT_BUCKET_ACCESS_DENIED, CELLKIT_BUCKET_NO_BUCKET)
   */
  settle(options?: { signal?: AbortSignal | undefined }): Promise<Applied | Rejected>;
}

/** Three outcomes, not two. */
export type ConditionalWrite = Applied | Rejected | Ambiguous;

/** Options of every call. */
export interface CallOptions {
  /** Ends the waiting. A conditional write that may have been sent by then answers `ambiguous` instead of throwing. */
  signal?: AbortSignal | undefined;
}

/** Options of a read. */
export interface GetOptions extends CallOptions {
  /** Only the bytes from `start` up to and without `end`, as `slice` takes them. */
  range?: { start: number; end?: number | undefined } | undefined;
  /** Refuse a longer body. @default the bucket's `maxBytes` */
  maxBytes?: number | undefined;
  /** Answer {@link NotModified} if the object still has this ETag. */
  ifNoneMatch?: string | undefined;
}

/** What a read answers; {@link NotModified} only to those who gave `ifNoneMatch`. */
export type ReadAnswer<Options extends GetOptions> =
  | StoredObject
  | undefined
  | ("ifNoneMatch" extends keyof Options
      ? Options["ifNoneMatch"] extends undefined
        ? never
        : NotModified
      : never);

/** Options of a write. */
export interface PutOptions extends CallOptions {
  /** @default "application/octet-stream" */
  contentType?: string | undefined;
}

/** Options of a listing. */
export interface ListOptions extends CallOptions {
  /** Answer keys with more of it after the prefix as one {@link ListedPrefix}. */
  delimiter?: string | undefined;
  /** Only keys after this one, in the order of their UTF-8 bytes. */
  startAfter?: string | undefined;
}

/** An object store with conditional writes. Keys are relative to the URL's prefix. */
export interface Bucket extends AsyncDisposable {
  /** As it was opened, without credentials. */
  readonly url: string;
  /** Reads an object; undefined when there is none. @throws CELLKIT_BUCKET_TOO_LARGE, CELLKIT_BUCKET_RANGE, … */
  get<Options extends GetOptions = CallOptions>(key: string, options?: Options): Promise<ReadAnswer<Options>>;
  /** Writes an object, whatever was there. One request, never repeated; after an error it may have been written. */
  put(key: string, body: Uint8Array | string, options?: PutOptions): Promise<{ etag: string }>;
  /** Writes an object if the key has none. */
  createIfAbsent(key: string, body: Uint8Array | string, options?: PutOptions): Promise<ConditionalWrite>;
  /**
   * Writes an object if the key has one with exactly this ETag. An ETag tells contents apart, not writes: whoever writes
   * the bytes that were there before restores the ETag too, so records that are fenced this way need a unique content.
   */
  replaceIf(
    key: string,
    body: Uint8Array | string,
    etag: string,
    options?: PutOptions,
  ): Promise<ConditionalWrite>;
  /** Removes an object; absent is fine. */
  delete(key: string, options?: CallOptions): Promise<void>;
  /** All keys that begin with `prefix`, in the order of their UTF-8 bytes, read page by page. */
  list(
    prefix: string,
    options: ListOptions & { delimiter: string },
  ): AsyncIterable<ListedObject | ListedPrefix>;
  /** All keys that begin with `prefix`. */
  list(
    prefix: string,
    options?: CallOptions & { startAfter?: string | undefined },
  ): AsyncIterable<ListedObject>;
  /** Frees connections and files; calls after it fail with CELLKIT_BUCKET_CLOSED. Idempotent. */
  close(): Promise<void>;
}
