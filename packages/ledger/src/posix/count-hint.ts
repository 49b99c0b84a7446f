/**
 * What replicas of ours tell each other of the number of records, in a file beside them: the count, and the directory's time
 * after the change that led to it. Written and read under the lock. A hint whose time is not the directory's is none, so that
 * changes by originals, crashes between a change and its hint, and lost writes all make it void; it needs no fsync.
 */
import { constants } from "node:fs";
import { quietly } from "./disk-failure.ts";
import type { LedgerDirectory } from "./ledger-directory.ts";

/** Always as long, so that a shorter hint leaves nothing of a longer one. */
const HINT_BYTES = 48;
const HINT = /^([0-9]{1,15}) ([0-9]{1,20}) *\n$/;
const FLAGS = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** The hint's file. Whatever fails here only makes somebody count. */
export class CountHint {
  readonly #directory: LedgerDirectory;
  #fd: number | undefined;

  constructor(directory: LedgerDirectory) {
    this.#directory = directory;
  }

  /** Opens the file, and makes it if it is missing; without it there are no hints. */
  async open(): Promise<void> {
    const { calls, hintPath } = this.#directory;
    const fd = await calls.open(hintPath, FLAGS, 0o600).catch(() => undefined);
    if (fd === undefined) return;
    if ((await calls.fstat(fd)).isFile()) this.#fd = fd;
    else await quietly(calls.close(fd));
  }

  /** How many records there were when the directory's time became what it is. */
  async read(timeNs: bigint): Promise<number | undefined> {
    if (this.#fd === undefined) return undefined;
    const bytes = Buffer.alloc(HINT_BYTES + 1);
    const length = await this.#directory.calls.read(this.#fd, bytes).catch(() => 0);
    const [, count, time] = HINT.exec(bytes.toString("latin1", 0, length)) ?? [];
    return time === String(timeNs) ? Number(count) : undefined;
  }

  async write(count: number, timeNs: bigint): Promise<void> {
    if (this.#fd === undefined) return;
    const text = `${`${count} ${timeNs}`.padEnd(HINT_BYTES - 1)}\n`;
    await quietly(this.#directory.calls.writeAt(this.#fd, Buffer.from(text), 0));
  }

  async close(): Promise<void> {
    const fd = this.#fd;
    this.#fd = undefined;
    if (fd !== undefined) await quietly(this.#directory.calls.close(fd));
  }
}
