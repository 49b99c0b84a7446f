/**
 * Makes renames durable: fsync of the directory, shared by all who wait for the same one (group commit). Who arrives
 * while an fsync runs may have renamed after it began, so it waits for the next one, together with all others.
 *
 * A directory that was made a moment ago is itself an entry of its parent, perhaps made by another process that has not
 * synced yet. So the first time this process sees a directory (by inode and time of birth: they come and go), it syncs
 * the parent too, and so on up to the root.
 */
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import { errnoOf } from "./disk-failure.ts";

/** Forgetting costs one more fsync of the parent. */
const KNOWN_LIMIT_COUNT = 50_000;

interface Line {
  running: Promise<void>;
  next?: Promise<void>;
}

/** Group commit for the directories below one root, which must be durable itself. */
export class DirectorySync {
  readonly #root: string;
  readonly #lines = new Map<string, Line>();
  readonly #known = new Map<string, string>();

  constructor(root: string) {
    this.#root = root;
  }

  /** Resolves when everything that was done in the directory before this call is durable. */
  sync(directory: string): Promise<void> {
    const line = this.#lines.get(directory);
    if (line === undefined) {
      const started: Line = { running: Promise.resolve() };
      started.running = this.#run(directory, started);
      this.#lines.set(directory, started);
      return started.running;
    }
    line.next ??= line.running
      .catch(() => {})
      .then(() => {
        line.running = line.next ?? line.running;
        delete line.next;
        return this.#run(directory, line);
      });
    return line.next;
  }

  async #run(directory: string, line: Line): Promise<void> {
    try {
      await this.#syncNow(directory);
    } finally {
      if (line.next === undefined) this.#lines.delete(directory);
    }
  }

  async #syncNow(directory: string): Promise<void> {
    let handle: FileHandle;
    try {
      handle = await open(directory, "r");
    } catch (error) {
      // Removed because it was empty: then the removal of its last entry is durable with the parent.
      if (errnoOf(error) !== "ENOENT" || directory === this.#root) throw error;
      return this.sync(dirname(directory));
    }
    let identity: string;
    try {
      const { ino, birthtimeMs } = await handle.stat();
      identity = `${ino} ${birthtimeMs}`;
      await handle.sync();
    } finally {
      await handle.close();
    }
    if (directory === this.#root || this.#known.get(directory) === identity) return;
    await this.sync(dirname(directory));
    if (this.#known.size >= KNOWN_LIMIT_COUNT) this.#known.clear();
    this.#known.set(directory, identity);
  }
}
