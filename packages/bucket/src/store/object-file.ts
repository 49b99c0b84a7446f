/**
 * Reads object files: footer and content. The calls that open a file and read its last 16 KiB are synchronous: they take
 * some ten microseconds, whereas in libuv's pool each would queue behind fsyncs of several milliseconds.
 */
import { closeSync, fstatSync, openSync, readSync, read as startRead } from "node:fs";
import { promisify } from "node:util";
import { decodeFooter, type Footer, footerBytes } from "../core/object-footer.ts";
import { CorruptObjectError } from "../errors.ts";
import { errnoOf } from "./disk-failure.ts";

const read = promisify(startRead);

/** Most footers, and many whole objects, come with one read of this size from the end. */
const TAIL_BYTES = 16 * 1024;
/** One read of a streamed body. */
const READ_BYTES = 256 * 1024;

/** What is known of a stored object besides its content. */
export interface ObjectHead extends Footer {
  /** Milliseconds since the Unix epoch. */
  modifiedMs: number;
}

/** An open object: it stays whole and readable even when the key is replaced or deleted meanwhile. Close it. */
export class OpenObject {
  readonly head: ObjectHead;
  readonly #tail: Uint8Array;
  readonly #tailStart: number;
  #fd: number | undefined;

  constructor(head: ObjectHead, fd: number, tail: Uint8Array, tailStart: number) {
    this.head = head;
    this.#fd = fd;
    this.#tail = tail;
    this.#tailStart = tailStart;
  }

  /** The bytes `[start, end)` if they were read when the object was opened (they lie in its last 16 KiB). */
  inMemory(start: number, end: number): Uint8Array | undefined {
    if (start < this.#tailStart) return undefined;
    return this.#tail.subarray(start - this.#tailStart, end - this.#tailStart);
  }

  /** The bytes `[start, end)` of the content, in pieces of at most 256 KiB. */
  async *read(start: number, end: number): AsyncGenerator<Uint8Array> {
    let at = start;
    while (at < end) {
      const rest = this.inMemory(at, end);
      if (rest !== undefined) {
        yield rest;
        return;
      }
      if (this.#fd === undefined) throw new CorruptObjectError("(open object)", "read after it was closed");
      const piece = Buffer.allocUnsafe(Math.min(READ_BYTES, end - at));
      const { bytesRead } = await read(this.#fd, piece, 0, piece.length, at);
      if (bytesRead === 0)
        throw new CorruptObjectError("(open object)", "it became shorter while it was read");
      at += bytesRead;
      yield piece.subarray(0, bytesRead);
    }
  }

  /** Idempotent; not while a read is under way. */
  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

/** Opens an object's file; undefined when there is none. @throws CorruptObjectError (CELLKIT_BUCKET_CORRUPT) */
export function openObject(path: string): OpenObject | undefined {
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch (error) {
    if (errnoOf(error) === "ENOENT" || errnoOf(error) === "ENOTDIR") return undefined;
    throw error;
  }
  try {
    const { size, mtimeMs } = fstatSync(fd);
    let tail = readTail(fd, size, TAIL_BYTES);
    const length = footerBytes(tail);
    if (length === undefined || length > size) throw new CorruptObjectError(path, "no footer");
    if (length > tail.length) tail = readTail(fd, size, length);
    const footer = decodeFooter(tail.subarray(tail.length - length), size);
    if (footer === undefined) throw new CorruptObjectError(path, "footer unreadable or sizes differ");
    return new OpenObject({ ...footer, modifiedMs: Math.floor(mtimeMs) }, fd, tail, size - tail.length);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** Reads only what is known of an object; undefined when there is none. */
export function readHead(path: string): ObjectHead | undefined {
  const object = openObject(path);
  object?.close();
  return object?.head;
}

function readTail(fd: number, sizeBytes: number, lengthBytes: number): Uint8Array {
  const length = Math.min(sizeBytes, lengthBytes);
  const tail = Buffer.allocUnsafe(length);
  let done = 0;
  while (done < length) {
    const bytesRead = readSync(fd, tail, done, length - done, sizeBytes - length + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return tail.subarray(0, done);
}
