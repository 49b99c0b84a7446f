/**
 * Makes renames durable: fsync of the directory, shared by all who wait for the same one (group commit). Who arrives
 * while an fsync runs may have renamed after it began, so it waits for the next one, together with all others.
 *
 * A directory that was made a moment ago is itself an entry of its parent, perhaps made by another process that has not
 * synced yet. So the first time this process sees a directory (by inode and time of birth: they come and go), it syncs
 * the parent too, and so on up to the root.
 */
import { closeSync, fstatSync, openSync, fsync as startFsync } from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { errnoOf } from "./disk-failure.ts";

const fsync = promisify(startFsync);

/** Forgetting costs one more fsync of the parent. */
const KNOWN_LIMIT_COUNT = 50_000;

/**
 * How many fsyncs of one directory run at a time. With one, a writer waits for the rest of one and the whole of the next;
 * a second one that overlaps is nearly free, since the file system's journal joins them (measured: bench).
 */
const PARALLEL_COUNT = 2;

interface Line {
  running: number;
  next: PromiseWithResolvers<void> | undefined;
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
    let line = this.#lines.get(directory);
    if (line === undefined) {
      line = { running: 0, next: undefined };
      this.#lines.set(directory, line);
    }
    if (line.running < PARALLEL_COUNT) return this.#run(directory, line);
    line.next ??= Promise.withResolvers();
    return line.next.promise;
  }

  async #run(directory: string, line: Line): Promise<void> {
    line.running += 1;
    try {
      await this.#syncNow(directory);
    } finally {
      line.running -= 1;
      const { next } = line;
      line.next = undefined;
      if (next !== undefined) this.#run(directory, line).then(next.resolve, next.reject);
      else if (line.running === 0) this.#lines.delete(directory);
    }
  }

  async #syncNow(directory: string): Promise<void> {
    let fd: number;
    try {
      fd = openSync(directory, "r");
    } catch (error) {
      // Removed because it was empty: then the removal of its last entry is durable with the parent.
      if (errnoOf(error) !== "ENOENT" || directory === this.#root) throw error;
      return this.sync(dirname(directory));
    }
    let identity: string;
    try {
      const { ino, birthtimeNs } = fstatSync(fd, { bigint: true });
      identity = `${ino} ${birthtimeNs}`;
      await fsync(fd);
    } finally {
      closeSync(fd);
    }
    if (directory === this.#root || this.#known.get(directory) === identity) return;
    await this.sync(dirname(directory));
    if (this.#known.size >= KNOWN_LIMIT_COUNT) this.#known.clear();
    this.#known.set(directory, identity);
  }
}
