// Bodies that can be sent more than once. Strings, buffers, blobs and forms simply are; a one-shot source is kept as
// it is sent, up to a bound; a factory makes a new one. Large uploads get a head start: the first bytes, a short
// pause, then the rest, since a draining node refuses after the head and a refusal that meets a full send buffer is
// lost to a reset.
import { type BodyInit, FormData } from "undici";

/** What undici's dispatcher takes as a body, and what its types leave out though it takes it. */
export type AnyBody =
  | BodyInit
  | NodeJS.ReadableStream
  | AsyncIterable<unknown>
  | Iterable<unknown>
  | null
  | undefined;

/** The head start of one attempt. */
export interface HeadStart {
  readonly firstChunkBytes: number;
  readonly waitMs: number;
}

/** Pieces in which a large body is written: small enough that a refusal is seen before all is out. */
const PIECE_BYTES = 65_536;

/** True for a source that can be read once only. */
export function isOneShot(body: AnyBody): boolean {
  if (body === null || body === undefined || typeof body === "string") return false;
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return false;
  return !(body instanceof Blob || body instanceof FormData || body instanceof URLSearchParams);
}

/** Length in bytes where it can be told; undefined for one-shot sources and forms. */
export function lengthOf(body: AnyBody): number | undefined {
  if (body === null || body === undefined) return 0;
  if (typeof body === "string") return Buffer.byteLength(body);
  if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return body.byteLength;
  if (body instanceof Blob) return body.size;
  return undefined;
}

/** A body as an iterable of bytes that a reader can take from any position that is still kept. */
interface Feed {
  /** The chunk at an index; undefined is the end. */
  chunkAt(index: number): Promise<Uint8Array | undefined>;
  /** Told how much of the body one attempt has handed over. */
  sent(bytes: number): void;
}

/** A one-shot source, kept while it is small. */
export class OneShotBody implements Feed {
  /** True once more was sent than is kept: no further attempt can have it. */
  consumed = false;
  /** What the source itself threw. That is the caller's error, never the node's. */
  error: unknown;
  readonly #iterator: AsyncIterator<unknown> | Iterator<unknown>;
  readonly #keepBytes: number;
  readonly #chunks = new Map<number, Uint8Array>();
  #pulledCount = 0;
  #ended = false;
  #pulling: Promise<void> | undefined;

  constructor(source: AnyBody, keepBytes: number) {
    this.#keepBytes = keepBytes;
    const stream = source as { on?(event: "error", listener: () => void): void };
    // Its iterator tells the same error; without a listener a stream that fails early would end the process.
    if (typeof stream.on === "function") stream.on("error", () => undefined);
    const iterable = source as AsyncIterable<unknown> & Iterable<unknown>;
    this.#iterator = (iterable[Symbol.asyncIterator] ?? iterable[Symbol.iterator]).call(iterable);
  }

  async chunkAt(index: number): Promise<Uint8Array | undefined> {
    while (index >= this.#pulledCount && !this.#ended) {
      this.#pulling ??= this.#pull().finally(() => {
        this.#pulling = undefined;
      });
      await this.#pulling;
    }
    if (this.error !== undefined) throw this.error;
    const chunk = this.#chunks.get(index);
    if (this.consumed) this.#chunks.delete(index - 1);
    return chunk;
  }

  sent(bytes: number): void {
    if (bytes <= this.#keepBytes || this.consumed) return;
    this.consumed = true;
    // The chunk that is being sent may have a rest; the ones before it are of no more use.
    for (const index of this.#chunks.keys()) {
      if (index < this.#pulledCount - 1) this.#chunks.delete(index);
    }
  }

  /** Lets the source go. */
  close(): void {
    this.#chunks.clear();
    if (!this.#ended) void Promise.resolve(this.#iterator.return?.()).catch(() => undefined);
    this.#ended = true;
  }

  async #pull(): Promise<void> {
    try {
      const { done, value } = await this.#iterator.next();
      if (done === true) this.#ended = true;
      else {
        this.#chunks.set(this.#pulledCount, toBytes(value));
        this.#pulledCount += 1;
      }
    } catch (error) {
      this.error = error;
      this.#ended = true;
    }
  }
}

/** Bytes that are all there. */
export class WholeBody implements Feed {
  readonly #bytes: Uint8Array;

  constructor(body: string | ArrayBuffer | ArrayBufferView) {
    this.#bytes = toBytes(body);
  }

  chunkAt(index: number): Promise<Uint8Array | undefined> {
    return Promise.resolve(index === 0 ? this.#bytes : undefined);
  }

  sent(): void {}
}

/** One attempt's reading of a body. */
export class BodyReader implements AsyncIterableIterator<Uint8Array> {
  readonly #feed: Feed;
  readonly #headStart: HeadStart | undefined;
  #index = 0;
  #offset = 0;
  #sentBytes = 0;
  #waited = false;
  #stopped = false;
  #wake: (() => void) | undefined;

  constructor(feed: Feed, headStart: HeadStart | undefined) {
    this.#feed = feed;
    this.#headStart = headStart;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    const first = this.#sentBytes === 0;
    if (!first && this.#headStart !== undefined && !this.#waited) {
      this.#waited = true;
      await this.#pause(this.#headStart.waitMs);
    }
    const chunk = this.#stopped ? undefined : await this.#feed.chunkAt(this.#index);
    if (chunk === undefined || this.#stopped) return { done: true, value: undefined };
    const limit = first && this.#headStart !== undefined ? this.#headStart.firstChunkBytes : PIECE_BYTES;
    const piece = chunk.subarray(this.#offset, this.#offset + limit);
    this.#offset += piece.length;
    this.#sentBytes += piece.length;
    if (this.#offset >= chunk.length) {
      this.#index += 1;
      this.#offset = 0;
    }
    this.#feed.sent(this.#sentBytes);
    return { done: false, value: piece };
  }

  /** The attempt is over: a pause ends, nothing more is read. The source stays for another attempt. */
  stop(): void {
    this.#stopped = true;
    this.#wake?.();
  }

  return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.stop();
    return Promise.resolve({ done: true, value: undefined });
  }

  #pause(waitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

function toBytes(value: unknown): Uint8Array {
  if (typeof value === "string") return Buffer.from(value);
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  throw new TypeError(`a body chunk is a ${typeof value}; give strings or bytes`);
}
