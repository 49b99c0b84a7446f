/** Reads records. Never repairs, never replaces, never follows a symbolic link, never waits on a FIFO. */
import { constants } from "node:fs";
import { MAX_RECORD_BYTES, parseRecord } from "../core/record.ts";
import { CorruptRecordError } from "../errors.ts";
import type { Owner } from "../ledger.ts";
import { diskFailure, errnoOf, quietly } from "./disk-failure.ts";
import type { LedgerDirectory } from "./ledger-directory.ts";
import type { PosixLedgerListener } from "./ledger-event.ts";

/** A record's file: what it says, or why it cannot be used. */
export interface FoundRecord {
  content: { owner: Owner } | { problem: string };
  /** Unix milliseconds. */
  modifiedMs: number;
}

const NO_FILE = { problem: "it is no regular file, but a link, a directory or the like" };

/** Reading by key. */
export class RecordFiles {
  readonly #directory: LedgerDirectory;
  readonly #emit: PosixLedgerListener;

  constructor(directory: LedgerDirectory, emit: PosixLedgerListener) {
    this.#directory = directory;
    this.#emit = emit;
  }

  /**
   * The owner by the record; undefined if there is none.
   * @throws CorruptRecordError, LedgerUnavailableError
   */
  async owner(key: string): Promise<Owner | undefined> {
    const found = await this.inspect(key);
    return found === undefined ? undefined : this.ownerOf(key, found);
  }

  /** @throws CorruptRecordError */
  ownerOf(key: string, { content }: FoundRecord): Owner {
    if ("owner" in content) return content.owner;
    this.reportCorrupt(key, content.problem);
    throw new CorruptRecordError(this.#directory.url, key, content.problem);
  }

  /** Tells the listener. */
  reportCorrupt(key: string, problem: string): void {
    this.#emit({ kind: "corrupt", key, problem });
  }

  /** The record's file, good or bad; undefined if there is none. @throws LedgerUnavailableError */
  async inspect(key: string): Promise<FoundRecord | undefined> {
    const path = this.#directory.recordPath(key);
    try {
      const status = await this.#directory.calls.lstat(path);
      if (status !== undefined) {
        const modifiedMs = Number(status.mtimeNs) / 1e6;
        if (!status.isFile()) return { content: NO_FILE, modifiedMs };
        const bytes = await this.#read(path);
        if (bytes !== undefined)
          return { content: bytes === "no file" ? NO_FILE : parseRecord(bytes), modifiedMs };
      }
    } catch (error) {
      throw diskFailure(this.#directory.url, `read the record ${key}`, error, "no");
    }
    // Nothing is there: true of this ledger only if its directory is.
    await this.#directory.check();
    return undefined;
  }

  async #read(path: string): Promise<Uint8Array | "no file" | undefined> {
    const { calls } = this.#directory;
    let fd: number;
    try {
      fd = await calls.open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch (error) {
      // Retired, or replaced, since it was looked at.
      if (errnoOf(error) === "ENOENT") return undefined;
      if (errnoOf(error) === "ELOOP") return "no file";
      throw error;
    }
    try {
      if (!(await calls.fstat(fd)).isFile()) return "no file";
      const bytes = Buffer.allocUnsafe(MAX_RECORD_BYTES + 1);
      return bytes.subarray(0, await calls.read(fd, bytes));
    } finally {
      await quietly(calls.close(fd));
    }
  }
}
