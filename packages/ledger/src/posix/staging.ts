/** Writes records aside, durably, before they get their names. */
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { LedgerUnsupportedError } from "../errors.ts";
import { errnoOf, quietly } from "./disk-failure.ts";
import { type LedgerDirectory, STAGING_NAME } from "./ledger-directory.ts";
import { openFileLimit } from "./open-files.ts";

/** Files that a crash left behind are removed by the next start when they are so old: no claim takes that long. */
const OURS_STALE_MS = 10 * 60_000;
/** The same for those of the original, which we know less about. */
const OTHERS_STALE_MS = 24 * 60 * 60_000;

/** After so many files, at about 50 us each, lookups and everybody else have their turn of the event loop. */
const AT_ONCE_COUNT = 8;

/** A group has up to 128 files open, but no more than this part of what the process may: the others are for its connections. */
const SHARE_OF_OPEN_FILES = 1 / 4;

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** The staging folder of one ledger. */
export class Staging {
  readonly #directory: LedgerDirectory;
  readonly #prefix = `${process.pid}-${randomUUID()}`;
  #count = 0;
  /** How many files are open at once. */
  #openLimit = 1;

  constructor(directory: LedgerDirectory) {
    this.#directory = directory;
  }

  /**
   * Makes the folder, if it is missing. Rejects with the system's error, as all of this class does.
   * @throws LedgerUnsupportedError when something else has its name
   */
  async prepare(): Promise<void> {
    this.#openLimit = Math.max(1, Math.floor((await openFileLimit()) * SHARE_OF_OPEN_FILES));
    await mkdir(this.#directory.stagingPath, { mode: 0o700 }).catch((error: unknown) => {
      if (errnoOf(error) !== "EEXIST") throw error;
    });
    await this.#checkFolder();
  }

  /** That the folder is this ledger's own: through a link, the files of others would be taken for what a crash left behind. */
  async #checkFolder(): Promise<void> {
    const { calls, path, stagingPath, url } = this.#directory;
    const [own, folder] = [await calls.lstat(path), await calls.lstat(stagingPath)];
    const users = [BigInt(process.getuid?.() ?? -1), own?.uid];
    if (folder?.isDirectory() !== true || folder.dev !== own?.dev || !users.includes(folder.uid))
      throw new LedgerUnsupportedError(
        url,
        `${stagingPath} is no directory of its own, but a link, a mount, or another user's; nothing in it was touched. Move it away`,
      );
  }

  /** Writes files; when this resolves, those that have a path are durable. */
  async write(texts: readonly string[]): Promise<({ path: string } | { error: unknown })[]> {
    const outcomes: ({ path: string } | { error: unknown })[] = [];
    for (let at = 0; at < texts.length; at += this.#openLimit)
      outcomes.push(...(await this.#writeSome(texts.slice(at, at + this.#openLimit))));
    return outcomes;
  }

  /** First all are written, then all are fsynced: while the journal is being written, to make a file waits for it. */
  async #writeSome(texts: readonly string[]): Promise<({ path: string } | { error: unknown })[]> {
    const made: ({ path: string; fd: number } | { error: unknown })[] = [];
    for (const [index, text] of texts.entries()) {
      if (index % AT_ONCE_COUNT === AT_ONCE_COUNT - 1) await nextTurn();
      made.push(await this.#make(text).catch((error: unknown) => ({ error })));
    }
    return Promise.all(
      made.map((file) =>
        "error" in file ? file : this.#finish(file).catch((error: unknown) => ({ error })),
      ),
    );
  }

  async #make(text: string): Promise<{ path: string; fd: number }> {
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
      for (let rest = Buffer.from(text); rest.length > 0; ) rest = rest.subarray(await calls.write(fd, rest));
      return { path, fd };
    } catch (error) {
      await quietly(calls.close(fd));
      await this.discard(path);
      throw error;
    }
  }

  async #finish({ path, fd }: { path: string; fd: number }): Promise<{ path: string }> {
    const { calls } = this.#directory;
    try {
      await calls.fsync(fd);
    } catch (error) {
      // The kernel may call the file clean from now on although it is not: it must never be used.
      await quietly(calls.close(fd));
      await this.discard(path);
      throw error;
    }
    await calls.close(fd);
    return { path };
  }

  /** Removes a staging file; one that cannot be removed is left to a later start. */
  discard(path: string): Promise<void> {
    return quietly(this.#directory.calls.unlink(path));
  }

  /**
   * What crashes left behind: paths of staging files that are too old to be anybody's.
   * @param names those names in the ledger's directory for which {@link maybeStaging} holds
   */
  async findStale(names: readonly string[], nowMs: number): Promise<string[]> {
    const { calls, path, stagingPath } = this.#directory;
    const candidates = names.map((name) => join(path, name));
    await this.#checkFolder();
    await calls.eachName(stagingPath, (name) => {
      candidates.push(join(stagingPath, name));
      return true;
    });
    const stale: string[] = [];
    for (const candidate of candidates) {
      const status = await calls.lstat(candidate);
      if (status?.isFile() !== true) continue;
      const ageMs = nowMs - Number(status.mtimeNs) / 1e6;
      const staleMs = candidate.startsWith(join(path, ".tmp")) ? OTHERS_STALE_MS : OURS_STALE_MS;
      if (ageMs >= staleMs) stale.push(candidate);
    }
    return stale;
  }
}

/** Whether a name in the ledger's directory may be that of a staging file. */
export function maybeStaging(name: string): boolean {
  return (name.startsWith(".claim-") && name !== STAGING_NAME) || name.startsWith(".tmp");
}
