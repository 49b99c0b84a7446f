/**
 * Where objects are written before they have a name. Each open store has a folder of its own and holds a lock on it for
 * as long as it lives; at its start a store removes the folders of the dead.
 */
import { createHash, type Hash, randomUUID } from "node:crypto";
import { closeSync, openSync, fdatasync as startFdatasync, write as startWrite, writeSync } from "node:fs";
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { encodeFooter, FOOTER_LIMIT_BYTES, type Footer } from "../core/object-footer.ts";
import { BucketOptionError } from "../errors.ts";
import { tryLock, unlock } from "./flock.ts";

const fdatasync = promisify(startFdatasync);
const write = promisify(startWrite);

/** Up to here a body is kept in memory and written by one call, footer included. */
const BUFFER_LIMIT_BYTES = 256 * 1024;

/** The staging folder of one open store. */
export class Staging {
  readonly #folder: string;
  readonly #fd: number;
  #count = 0;

  private constructor(folder: string, fd: number) {
    this.#folder = folder;
    this.#fd = fd;
  }

  /** Makes a folder below `root` and removes those of processes that died. */
  static async open(root: string): Promise<Staging> {
    await mkdir(root, { recursive: true });
    // One at a time, so that nobody takes a folder for dead between its making and its locking.
    const gate = openSync(join(root, "gate"), "a", 0o600);
    try {
      while (!tryLock(gate)) await sleep(2);
      for (const name of await readdir(root)) {
        if (name !== "gate") await removeIfDead(join(root, name));
      }
      const folder = join(root, randomUUID());
      await mkdir(folder);
      const fd = openSync(folder, "r");
      tryLock(fd);
      return new Staging(folder, fd);
    } finally {
      closeSync(gate);
    }
  }

  /** Begins an object. */
  begin(): StagedObject {
    this.#count += 1;
    return new StagedObject(join(this.#folder, String(this.#count)));
  }

  /** Removes the folder. */
  async close(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
    unlock(this.#fd);
    closeSync(this.#fd);
  }
}

async function removeIfDead(folder: string): Promise<void> {
  const fd = openSync(folder, "r");
  try {
    if (tryLock(fd)) await rm(folder, { recursive: true, force: true });
  } finally {
    closeSync(fd);
  }
}

/**
 * An object being written: {@link StagedObject.write} in order, then {@link StagedObject.finish}; the store persists and
 * renames it once it is sure to be wanted. Discard it in any case.
 */
export class StagedObject {
  readonly path: string;
  readonly #md5: Hash = createHash("md5");
  #buffered: Uint8Array[] = [];
  #bufferedBytes = 0;
  #sizeBytes = 0;
  #fd: number | undefined;
  #created = false;
  #published = false;

  constructor(path: string) {
    this.path = path;
  }

  /** Takes the next bytes; the caller must not change them afterwards. */
  async write(bytes: Uint8Array): Promise<void> {
    this.#md5.update(bytes);
    this.#sizeBytes += bytes.length;
    this.#buffered.push(bytes);
    this.#bufferedBytes += bytes.length;
    if (this.#bufferedBytes > BUFFER_LIMIT_BYTES) await this.#flush();
  }

  /** Says that the content is complete. `etag` overrides the MD5 of the content (multipart). */
  finish(headers: Readonly<Record<string, string>>, etag?: string): Footer {
    const footer = { etag: etag ?? this.#md5.digest("hex"), sizeBytes: this.#sizeBytes, headers };
    const encoded = encodeFooter(footer);
    if (encoded.length > FOOTER_LIMIT_BYTES) {
      throw new BucketOptionError(
        `the object's headers take more than ${FOOTER_LIMIT_BYTES} bytes; send fewer`,
      );
    }
    this.#buffered.push(encoded);
    return footer;
  }

  /** Writes what is still in memory and makes the finished file durable. */
  async persist(): Promise<void> {
    const rest = this.#takeBuffered();
    const fd = this.#open();
    try {
      writeAllSync(fd, rest);
      await fdatasync(fd);
    } finally {
      this.#close();
    }
  }

  /** Says that the file has got its name: nothing is left to discard. */
  published(): void {
    this.#published = true;
  }

  /** Removes what was written, unless it was published. Idempotent. */
  async discard(): Promise<void> {
    if (this.#published) return;
    this.#buffered = [];
    this.#close();
    if (this.#created) await rm(this.path, { force: true });
  }

  async #flush(): Promise<void> {
    const bytes = this.#takeBuffered();
    const fd = this.#open();
    let at = 0;
    while (at < bytes.length) at += (await write(fd, bytes, at)).bytesWritten;
  }

  #takeBuffered(): Uint8Array {
    const bytes = Buffer.concat(this.#buffered);
    this.#buffered = [];
    this.#bufferedBytes = 0;
    return bytes;
  }

  #open(): number {
    this.#fd ??= openSync(this.path, "wx", 0o600);
    this.#created = true;
    return this.#fd;
  }

  #close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

function writeAllSync(fd: number, bytes: Uint8Array): void {
  let at = 0;
  while (at < bytes.length) at += writeSync(fd, bytes, at);
}
