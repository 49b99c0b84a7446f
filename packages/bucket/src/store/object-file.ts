/** Reads object files: footer and content. */
import { type FileHandle, open } from "node:fs/promises";
import { decodeFooter, type Footer, footerBytes, TRAILER_BYTES } from "../core/object-footer.ts";
import { CorruptObjectError } from "../errors.ts";
import { errnoOf } from "./disk-failure.ts";

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
  readonly #handle: FileHandle;
  readonly #tail: Uint8Array;
  readonly #tailStart: number;

  constructor(head: ObjectHead, handle: FileHandle, tail: Uint8Array, tailStart: number) {
    this.head = head;
    this.#handle = handle;
    this.#tail = tail;
    this.#tailStart = tailStart;
  }

  /** The bytes `[start, end)` of the content, in pieces of at most 256 KiB. */
  async *read(start: number, end: number): AsyncGenerator<Uint8Array> {
    let at = start;
    while (at < end) {
      if (at >= this.#tailStart) {
        yield this.#tail.subarray(at - this.#tailStart, end - this.#tailStart);
        return;
      }
      const piece = Buffer.allocUnsafe(Math.min(READ_BYTES, end - at));
      const { bytesRead } = await this.#handle.read(piece, 0, piece.length, at);
      if (bytesRead === 0)
        throw new CorruptObjectError("(open object)", "it became shorter while it was read");
      at += bytesRead;
      yield piece.subarray(0, bytesRead);
    }
  }

  /** Idempotent. */
  close(): Promise<void> {
    return this.#handle.close();
  }
}

/** Opens an object's file; undefined when there is none. @throws CorruptObjectError (CELLKIT_BUCKET_CORRUPT) */
export async function openObject(path: string): Promise<OpenObject | undefined> {
  let handle: FileHandle;
  try {
    handle = await open(path, "r");
  } catch (error) {
    if (errnoOf(error) === "ENOENT" || errnoOf(error) === "ENOTDIR") return undefined;
    throw error;
  }
  try {
    const { size, mtimeMs } = await handle.stat();
    let tail = await readTail(handle, size, TAIL_BYTES);
    const length = footerBytes(tail);
    if (length === undefined || length > size) throw new CorruptObjectError(path, "no footer");
    if (length > tail.length) tail = await readTail(handle, size, length);
    const footer = decodeFooter(tail.subarray(tail.length - length), size);
    if (footer === undefined) throw new CorruptObjectError(path, "footer unreadable or sizes differ");
    return new OpenObject({ ...footer, modifiedMs: Math.floor(mtimeMs) }, handle, tail, size - tail.length);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Reads only what is known of an object; undefined when there is none. */
export async function readHead(path: string): Promise<ObjectHead | undefined> {
  const object = await openObject(path);
  await object?.close();
  return object?.head;
}

async function readTail(handle: FileHandle, sizeBytes: number, lengthBytes: number): Promise<Uint8Array> {
  const length = Math.min(sizeBytes, Math.max(lengthBytes, TRAILER_BYTES));
  const tail = Buffer.allocUnsafe(length);
  let read = 0;
  while (read < length) {
    const { bytesRead } = await handle.read(tail, read, length - read, sizeBytes - length + read);
    if (bytesRead === 0) break;
    read += bytesRead;
  }
  return tail.subarray(0, read);
}
