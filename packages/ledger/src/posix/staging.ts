/** Writes records aside, durably, before they get their names. */
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf, quietly } from "./disk-failure.ts";
import type { LedgerDirectory } from "./ledger-directory.ts";

/** Files that a crash left behind are removed by the next start when they are so old: no claim takes that long. */
const OURS_STALE_MS = 10 * 60_000;
/** The same for those of the original, which we know less about. */
const OTHERS_STALE_MS = 24 * 60 * 60_000;

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** The staging folder of one ledger. */
export class Staging {
  readonly #directory: LedgerDirectory;
  readonly #prefix = `${process.pid}-${randomUUID()}`;
  #count = 0;

  constructor(directory: LedgerDirectory) {
    this.#directory = directory;
  }

  /** Makes the folder, if it is missing. Rejects with the system's error, as all of this class does. */
  async prepare(): Promise<void> {
    await mkdir(this.#directory.stagingPath, { mode: 0o700 }).catch((error: unknown) => {
      if (errnoOf(error) !== "EEXIST") throw error;
    });
  }

  /** Writes one file; when this resolves, its content is durable. Answers its path. */
  async write(text: string): Promise<string> {
    const { calls, stagingPath } = this.#directory;
    this.#count += 1;
    const path = join(stagingPath, `${this.#prefix}-${this.#count}`);
    const fd = await calls.open(path, NEW_FILE, 0o600).catch(async (error: unknown) => {
      if (errnoOf(error) !== "ENOENT") throw error;
      // Somebody removed the folder. Not so if the whole ledger is gone.
      await this.#directory.check();
      await this.prepare();
      return calls.open(path, NEW_FILE, 0o600);
    });
    try {
      const bytes = Buffer.from(text);
      const written = await calls.write(fd, bytes);
      if (written < bytes.length) await calls.write(fd, bytes.subarray(written));
      if (written < bytes.length && (await calls.fstat(fd)).size !== BigInt(bytes.length))
        throw new TypeError("short write");
      await calls.fsync(fd);
    } catch (error) {
      // After a failed fsync the kernel may call the file clean although it is not: it must never be used.
      await quietly(calls.close(fd));
      await this.discard(path);
      throw error;
    }
    await calls.close(fd);
    return path;
  }

  /** Removes a staging file; one that cannot be removed is left to a later start. */
  discard(path: string): Promise<void> {
    return quietly(this.#directory.calls.unlink(path));
  }

  /**
   * Removes what crashes left behind. Under the lock.
   * @param names those names in the ledger's directory for which {@link maybeStaging} holds
   */
  async removeStale(names: readonly string[], nowMs: number): Promise<void> {
    const { calls, path, stagingPath } = this.#directory;
    const candidates = names.map((name) => join(path, name));
    await calls.eachName(stagingPath, (name) => {
      candidates.push(join(stagingPath, name));
      return true;
    });
    for (const candidate of candidates) {
      const status = await calls.lstat(candidate);
      if (status?.isFile() !== true) continue;
      const ageMs = nowMs - Number(status.mtimeNs) / 1e6;
      const staleMs = candidate.startsWith(join(path, ".tmp")) ? OTHERS_STALE_MS : OURS_STALE_MS;
      if (ageMs >= staleMs) await calls.unlink(candidate);
    }
  }
}

/** Whether a name in the ledger's directory may be that of a staging file. */
export function maybeStaging(name: string): boolean {
  return name.startsWith(".claim-") || name.startsWith(".tmp");
}
