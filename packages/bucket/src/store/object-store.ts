/**
 * Objects as files, shared by `file://` buckets and the embedded server, in any number of processes.
 *
 * Short calls (stat, rename, unlink) are synchronous, see object-file.ts; fsync never is.
 *
 * A write: the body is received, a long one into a file under another name; then, holding the key's lock, its condition
 * is checked (so that who loses a race never waits for the disk), the file is fsynced and renamed and the directory
 * fsynced; only then is it acknowledged. A reader in this process waits for a
 * write of its key that is visible but not yet durable. (Another process may see it some milliseconds before that: if
 * the machine loses power just then, it saw what never was acknowledged.)
 */
import { renameSync, statSync, unlinkSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { keyBytes, pathOfKey } from "../core/object-key.ts";
import { BucketClosedError, UndecidedWriteError } from "../errors.ts";
import { DirectorySync } from "./directory-sync.ts";
import { diskFailure, errnoOf } from "./disk-failure.ts";
import { EmptyFolders } from "./empty-folders.ts";
import { KeyLocks } from "./key-locks.ts";
import { type Layout, prepareLayout } from "./layout.ts";
import { type ObjectHead, type OpenObject, openObject, readHead } from "./object-file.ts";
import { Place } from "./place.ts";
import { type StagedObject, Staging } from "./staging.ts";
import { type Cursor, type Found, walk } from "./walk.ts";

/** A folder may be removed as empty between its making and the rename into it; more often than this is no race. */
const RENAME_LIMIT_COUNT = 100;

/** What must hold for a write: nothing, no object, or an object with one of these ETags (without quotes; `*` any). */
export type Condition = { kind: "none" } | { kind: "absent" } | { kind: "etag"; etags: readonly string[] };

/** Whether the condition held: `exists`, `missing` and `mismatch` say why not, and nothing was changed. */
export type Outcome = { kind: "applied" } | { kind: "exists" } | { kind: "missing" } | { kind: "mismatch" };

/** One open bucket directory. */
export class ObjectStore {
  readonly layout: Layout;
  readonly #locks: KeyLocks;
  readonly #sync: DirectorySync;
  readonly #staging: Staging;
  readonly #place: Place;
  readonly #emptyFolders: EmptyFolders;
  /** Paths whose latest change is visible and not yet durable. */
  readonly #settling = new Map<string, Promise<void>>();
  #closed: Promise<void> | undefined;

  private constructor(layout: Layout, staging: Staging, place: Place) {
    this.layout = layout;
    this.#staging = staging;
    this.#place = place;
    this.#locks = new KeyLocks(layout.locks);
    this.#sync = new DirectorySync(layout.root);
    this.#emptyFolders = new EmptyFolders(layout.objects);
  }

  /** Opens a directory, making it a bucket if it is empty or absent. @throws BucketError of the disk or the format */
  static async open(directory: string): Promise<ObjectStore> {
    let place: Place | undefined;
    try {
      const layout = await prepareLayout(directory);
      place = new Place(layout.root, layout.objects);
      return new ObjectStore(layout, await Staging.open(layout.staging), place);
    } catch (error) {
      place?.close();
      throw diskFailure(directory, error);
    }
  }

  /** Begins a body: write it, then {@link put} it or discard it. */
  stage(): StagedObject {
    if (this.#closed !== undefined) throw new BucketClosedError(this.layout.root);
    return this.#staging.begin();
  }

  /**
   * Publishes a staged and finished object under a key, if the condition holds; otherwise discards it.
   * @throws UndecidedWriteError (CELLKIT_BUCKET_UNDECIDED) when it is visible but perhaps not durable; any other
   *   BucketError when it was not written
   */
  async put(key: string, staged: StagedObject, condition: Condition, signal?: AbortSignal): Promise<Outcome> {
    const bytes = keyBytes(key);
    const path = this.pathOf(bytes);
    try {
      return await this.#exclusively(bytes, path, condition, signal, async () => {
        const outcome = check(path, condition);
        if (outcome.kind === "applied") {
          await staged.persist();
          await renameInto(staged.path, path);
          staged.published();
          await this.makeDurable(path);
        }
        return outcome;
      });
    } finally {
      await staged.discard();
    }
  }

  /** Removes an object if the condition holds; an absent one is `missing`. */
  async delete(key: string, condition: Condition, signal?: AbortSignal): Promise<Outcome> {
    const bytes = keyBytes(key);
    const path = this.pathOf(bytes);
    return await this.#exclusively(bytes, path, condition, signal, async () => {
      const outcome = check(path, condition);
      if (outcome.kind !== "applied") return outcome;
      try {
        unlinkSync(path);
      } catch (error) {
        if (errnoOf(error) === "ENOENT") return { kind: "missing" };
        throw error;
      }
      await this.makeDurable(path);
      this.#emptyFolders.note(dirname(path));
      return outcome;
    });
  }

  /**
   * Checks a condition without holding the lock: what does not hold now need not be written aside first. A condition that
   * holds is checked again by {@link put}.
   */
  async precheck(key: string, condition: Condition): Promise<Outcome> {
    if (condition.kind === "none") return { kind: "applied" };
    const path = this.pathOf(keyBytes(key));
    await this.#settling.get(path)?.catch(() => {});
    this.#place.check();
    return await this.guarded(() => check(path, condition));
  }

  /** Opens an object for reading; undefined when there is none. The caller closes it. */
  async open(key: string): Promise<OpenObject | undefined> {
    const path = this.pathOf(keyBytes(key));
    await this.#settling.get(path)?.catch(() => {});
    const object = await this.guarded(() => openObject(path));
    // Nothing is there: true of this bucket only if its directory is.
    if (object === undefined) this.#place.check();
    return object;
  }

  /** What is known of an object besides its content. */
  async head(key: string): Promise<ObjectHead | undefined> {
    const object = await this.open(key);
    object?.close();
    return object?.head;
  }

  /** Where {@link keys} begins: both byte strings. */
  cursor(prefix: string, from: string): Cursor {
    return { prefix, from, onEmpty: (folder) => this.#emptyFolders.note(folder) };
  }

  /** Keys in the order of their bytes; see {@link Cursor}. */
  async *keys(cursor: Cursor): AsyncGenerator<Found> {
    try {
      yield* walk(this.layout.objects, "", cursor);
      this.#place.check();
    } catch (error) {
      throw diskFailure(this.layout.root, error);
    }
  }

  /** What is known of a found object; undefined when it has gone since. */
  async headOf(found: Found): Promise<ObjectHead | undefined> {
    const head = await this.guarded(() => readHead(found.path));
    if (head === undefined) this.#place.check();
    return head;
  }

  /** Waits for what runs, then removes this store's staging folder. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.guarded(async () => {
      try {
        await this.#locks.close();
        await this.#emptyFolders.close();
        await this.#staging.close();
      } finally {
        this.#place.close();
      }
    });
    return this.#closed;
  }

  pathOf(bytes: string): string {
    return join(this.layout.objects, ...pathOfKey(bytes));
  }

  /** Runs work under the key's lock, unless the condition fails while it waits: the losers of a race leave at once. */
  async #exclusively(
    bytes: string,
    path: string,
    condition: Condition,
    signal: AbortSignal | undefined,
    work: () => Promise<Outcome>,
  ): Promise<Outcome> {
    if (this.#closed !== undefined) throw new BucketClosedError(this.layout.root);
    let outcome: Outcome = { kind: "applied" };
    let release: (() => void) | undefined;
    this.#place.check();
    try {
      release = await this.#locks.acquire(bytes, signal, () => {
        outcome = check(path, condition);
        return outcome.kind === "applied";
      });
    } catch (error) {
      signal?.throwIfAborted();
      throw diskFailure(this.layout.root, error);
    }
    if (release === undefined) return outcome;
    try {
      // The lock's file may be that of a directory that is gone: then others lock another one.
      this.#place.check();
      return await this.guarded(work);
    } finally {
      release();
    }
  }

  /** Resolves when a file's name is durable. @throws UndecidedWriteError (CELLKIT_BUCKET_UNDECIDED) */
  async makeDurable(path: string): Promise<void> {
    const durable = this.#sync.sync(dirname(path));
    this.#settling.set(path, durable);
    try {
      await durable;
    } catch (error) {
      throw new UndecidedWriteError(this.layout.root, { cause: diskFailure(this.layout.root, error) });
    } finally {
      this.#settling.delete(path);
    }
  }

  /** Runs file operations; their failures become BucketErrors. */
  async guarded<T>(work: () => T | Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw diskFailure(this.layout.root, error);
    }
  }
}

function check(path: string, condition: Condition): Outcome {
  if (condition.kind === "none") return { kind: "applied" };
  if (condition.kind === "absent")
    return { kind: statSync(path, { throwIfNoEntry: false }) === undefined ? "applied" : "exists" };
  const head = readHead(path);
  if (head === undefined) return { kind: "missing" };
  const matches = condition.etags.some((etag) => etag === "*" || etag === head.etag);
  return { kind: matches ? "applied" : "mismatch" };
}

async function renameInto(from: string, to: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      renameSync(from, to);
      return;
    } catch (error) {
      if (errnoOf(error) !== "ENOENT" || attempt >= RENAME_LIMIT_COUNT) throw error;
    }
    try {
      await mkdir(dirname(to), { recursive: true });
    } catch (error) {
      if (errnoOf(error) !== "ENOENT") throw error;
    }
  }
}
