/** The directory of one ledger: its names, and that it is still the one that was opened. */
import { type BigIntStats, constants } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { LedgerUnavailableError } from "../errors.ts";
import { diskFailure } from "./disk-failure.ts";
import type { FileCalls } from "./file-calls.ts";

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

  /**
   * The directory's status, and that its path leads to the one that was opened: in another one, nothing would be found.
   * @throws LedgerUnavailableError when it was moved, replaced, or something was mounted over it
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
    return status;
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
