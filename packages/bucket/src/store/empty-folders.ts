/**
 * Removes folders of objects that became empty, some seconds later, since the next write often needs them again. A
 * writer that loses its folder meanwhile makes it anew (see object-store.ts), so no lock is needed.
 */
import { rmdir } from "node:fs/promises";
import { dirname } from "node:path";
import { errnoOf } from "./disk-failure.ts";

const DELAY_MS = 5_000;
const STAYS = new Set(["ENOTEMPTY", "EEXIST", "ENOENT", "EBUSY"]);

/** The folders to look at again, below one root that is never removed. */
export class EmptyFolders {
  readonly #root: string;
  readonly #pending = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(root: string) {
    this.#root = root;
  }

  /** Says that a folder may be empty now. */
  note(folder: string): void {
    if (folder === this.#root) return;
    this.#pending.add(folder);
    this.#timer ??= setTimeout(() => {
      // A folder that cannot be removed is no harm: it holds nothing, and its next listing notes it again.
      this.#running = this.#removeAll().catch(() => {});
    }, DELAY_MS).unref();
  }

  /** Looks at all of them at once. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#running;
    await this.#removeAll();
  }

  async #removeAll(): Promise<void> {
    this.#timer = undefined;
    const folders = [...this.#pending];
    this.#pending.clear();
    for (const folder of folders) await this.#remove(folder);
  }

  async #remove(folder: string): Promise<void> {
    for (let at = folder; at !== this.#root; at = dirname(at)) {
      try {
        await rmdir(at);
      } catch (error) {
        if (STAYS.has(errnoOf(error) ?? "")) return;
        throw error;
      }
    }
  }
}
