/** The directory of one ledger: its names, and that it is still the one that was opened. */
import { type BigIntStats, constants } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { LedgerUnavailableError } from "../errors.ts";
import { diskFailure } from "./disk-failure.ts";
import type { FileCalls } from "./file-calls.ts";
import { readMarker } from "./marker.ts";

/** The lock file, which every replica and the original know. Empty, never removed. */
export const LOCK_NAME = "ownership.lock";
/** Says that a ledger was created here. Its extension is none that the original looks at. */
export const MARKER_NAME = "cellkit.ledger";
/** Where replicas of ours tell each other how many records there are. */
export const HINT_NAME = "cellkit.count";
/**
 * Where records are written before they have their name. A folder, so that the ledger's own directory changes under the
 * lock only, and its time tells whether others changed it.
 */
export const STAGING_NAME = ".claim-staging";

const RECORD_NAME = /^([0-9a-f]{64})\.json$/;
const MARK_NAME = /^([0-9a-f]{64})\.retired$/;

/** The key of a record's file name; undefined for any other name. */
export function recordKey(name: string): string | undefined {
  return RECORD_NAME.exec(name)?.[1];
}

/** The key of the file name of a mark for the sweep; undefined for any other name. */
export function markKey(name: string): string | undefined {
  return MARK_NAME.exec(name)?.[1];
}

/** Whether a name counts against the capacity: its extension is `json`, whatever stands before it. */
export function countsAsRecord(name: string): boolean {
  return name.endsWith(".json") && name !== ".json";
}

/** Paths and the directory itself. */
export class LedgerDirectory {
  readonly path: string;
  readonly url: string;
  readonly calls: FileCalls;
  readonly #fd: number;
  readonly #identity: BigIntStats;
  #ledgerId: string | undefined;
  /** The marker's file when it was last read: as long as it is the same, so is what it says. */
  #marker: BigIntStats | undefined;

  private constructor(path: string, calls: FileCalls, fd: number, identity: BigIntStats) {
    this.path = path;
    this.url = pathToFileURL(path).href;
    this.calls = calls;
    this.#fd = fd;
    this.#identity = identity;
  }

  /** Holds the directory open, so that it cannot be unmounted unnoticed. */
  static async open(path: string, calls: FileCalls): Promise<LedgerDirectory> {
    const fd = await calls.open(path, constants.O_RDONLY | constants.O_DIRECTORY);
    return new LedgerDirectory(path, calls, fd, await calls.fstat(fd));
  }

  recordPath(key: string): string {
    return join(this.path, `${key}.json`);
  }

  markPath(key: string): string {
    return join(this.path, `${key}.retired`);
  }

  get lockPath(): string {
    return join(this.path, LOCK_NAME);
  }

  get markerPath(): string {
    return join(this.path, MARKER_NAME);
  }

  get hintPath(): string {
    return join(this.path, HINT_NAME);
  }

  get stagingPath(): string {
    return join(this.path, STAGING_NAME);
  }

  /** Says that the marker of this ledger is there, and must be from now on: see {@link check}. */
  expectLedger(ledgerId: string): void {
    this.#ledgerId = ledgerId;
  }

  /**
   * The directory's status, and that its path leads to the one that was opened and the opened ledger still lies in it:
   * anywhere else, nothing would be found.
   * @throws LedgerUnavailableError when it was moved, replaced, emptied, or something was mounted over it
   */
  async check(): Promise<BigIntStats> {
    let status: BigIntStats | undefined;
    try {
      status = await this.calls.lstat(this.path);
    } catch (error) {
      throw diskFailure(this.url, "look at its directory", error, "no");
    }
    if (status === undefined || status.ino !== this.#identity.ino || status.dev !== this.#identity.dev)
      throw new LedgerUnavailableError(
        this.url,
        "its directory was moved or replaced since it was opened. Put it back and start again",
        "no",
      );
    if (this.#ledgerId !== undefined) await this.#checkMarker(this.#ledgerId);
    return status;
  }

  /** Whoever empties the directory takes the marker, too. */
  async #checkMarker(ledgerId: string): Promise<void> {
    let found: string | undefined;
    try {
      const seen = await this.calls.lstat(this.markerPath);
      if (seen !== undefined && isSame(seen, this.#marker)) return;
      found = await readMarker(this);
      if (found === ledgerId) this.#marker = seen;
    } catch (error) {
      throw diskFailure(this.url, `look at ${MARKER_NAME}`, error, "no");
    }
    if (found !== ledgerId)
      throw new LedgerUnavailableError(
        this.url,
        `its directory was emptied, or another ledger put into it, since it was opened: ${MARKER_NAME} is ${
          found === undefined ? "gone" : "another's"
        }. Restore what was there from a backup; an empty ledger would run old work again`,
        "no",
      );
  }

  /** Makes durable what was linked and unlinked. Rejects with the system's error. */
  sync(): Promise<void> {
    return this.calls.fsync(this.#fd);
  }

  /** Frees the directory. */
  close(): Promise<void> {
    return this.calls.close(this.#fd);
  }
}

/** Whether a file is the one that was seen before, unchanged. Numbers of files are used again, so their times count, too. */
function isSame(seen: BigIntStats, before: BigIntStats | undefined): boolean {
  return seen.ino === before?.ino && seen.dev === before.dev && seen.mtimeNs === before.mtimeNs;
}
