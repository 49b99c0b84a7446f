// Tells when the files of a project change. Linux's inotify sees one directory at a time, so this one keeps a watch on each:
// the project's own tree, which also shows files that nothing imports yet, and the directories of files outside of it.
import { type FSWatcher, readdirSync, watch } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { WatchError } from "./errors.ts";

/** Where nothing lies that a person edits. */
const ignoredNames = new Set([".cellkit", ".git", ".wrangler", "node_modules", "dist"]);
/** A save is often several events: one is told when nothing came for this long. */
const quietMs = 100;
/** A file that is written all the time is never quiet: then a change is told after so long. */
const longestMs = 1_000;

/** What a watcher tells, and what it leaves out. */
export interface ProjectWatcherOptions {
  /** A directory that is written all the time. */
  ignore: string;
  /** Hears the path of the last changed file, relative to the project. */
  onChange: (file: string) => void;
  onError: (error: WatchError) => void;
}

/** Watches a project until it is closed. */
export class ProjectWatcher implements Disposable {
  readonly #directory: string;
  readonly #options: ProjectWatcherOptions;
  readonly #watchers = new Map<string, FSWatcher>();
  #quiet: NodeJS.Timeout | undefined;
  /** When the first change came that is not told yet, on the clock of `performance`. */
  #untoldMs: number | undefined;

  /** @throws WatchError (`CELLKIT_CLI_WATCH`) */
  constructor(directory: string, options: ProjectWatcherOptions) {
    this.#directory = resolve(directory);
    this.#options = { ...options, ignore: resolve(options.ignore) };
    this.#watchTree(this.#directory);
  }

  /** Also watches the directories of these files. @throws WatchError (`CELLKIT_CLI_WATCH`) */
  follow(files: readonly string[]): void {
    for (const file of files) this.#watch(dirname(file));
  }

  close(): void {
    clearTimeout(this.#quiet);
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #watchTree(directory: string): void {
    if (!this.#watch(directory)) return;
    for (const entry of entriesOf(directory)) {
      const path = join(directory, entry.name);
      if (entry.isDirectory() && !ignoredNames.has(entry.name) && path !== this.#options.ignore)
        this.#watchTree(path);
    }
  }

  /** Answers whether the directory is there. */
  #watch(directory: string): boolean {
    if (this.#watchers.has(directory)) return true;
    try {
      const watcher = watch(directory, (event, name) => this.#seen(directory, event, name));
      watcher.on("error", (cause) =>
        this.#options.onError(new WatchError(directory, reason(cause), { cause })),
      );
      this.#watchers.set(directory, watcher);
      return true;
    } catch (cause) {
      if (isAbsent(cause)) return false;
      throw new WatchError(directory, reason(cause), { cause });
    }
  }

  #seen(directory: string, event: string, name: string | null): void {
    if (name === null || ignoredNames.has(name)) return;
    const path = join(directory, name);
    if (path === this.#options.ignore) return;
    if (event === "rename" && this.#isInside(path)) this.#replace(path);
    clearTimeout(this.#quiet);
    const nowMs = performance.now();
    this.#untoldMs ??= nowMs;
    this.#quiet = setTimeout(
      () => {
        this.#untoldMs = undefined;
        this.#options.onChange(relative(this.#directory, path));
      },
      Math.max(0, Math.min(quietMs, this.#untoldMs + longestMs - nowMs)),
    );
  }

  /** A name came or went. A directory of that name is another one than before, and so are those below it. */
  #replace(path: string): void {
    for (const [watched, watcher] of this.#watchers) {
      if (watched !== path && !watched.startsWith(`${path}/`)) continue;
      watcher.close();
      this.#watchers.delete(watched);
    }
    try {
      if (
        entriesOf(dirname(path)).some(
          (entry) => entry.isDirectory() && join(entry.parentPath, entry.name) === path,
        )
      )
        this.#watchTree(path);
    } catch (error) {
      if (!(error instanceof WatchError)) throw error;
      this.#options.onError(error);
    }
  }

  #isInside(path: string): boolean {
    return path.startsWith(`${this.#directory}/`);
  }
}

/** Nothing for a directory that went away meanwhile. */
function entriesOf(directory: string) {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch (error) {
    if (isAbsent(error)) return [];
    throw error;
  }
}

function isAbsent(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes(reason(error));
}

function reason(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}
