/**
 * The original's algorithm, plainly: every operation opens the lock file, takes the lock or gives up at once, and does
 * everything under it, a scan of the directory included. Synchronous; written from the contract and not from ours, so that
 * it shares no code with what it is held against but the hash.
 */
import {
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { extname, join } from "node:path";
import { tryLock } from "@cellkit/bucket/flock";
import type { Digest } from "../../src/digest.ts";

export interface ReferenceOwner {
  backend: string;
  bodyHash: string;
}

export type ReferenceClaim =
  | { kind: "new" | "existing"; owner: ReferenceOwner }
  | { kind: "conflict" }
  | { kind: "full" };

/** The lock is held by another: the original answers 503 at once. */
export class ReferenceBusyError extends Error {}

export class ReferenceLedger {
  readonly #directory: string;
  readonly #capacity: number;
  readonly #digest: Digest;
  #stagedCount = 0;

  constructor(directory: string, capacity: number, digest: Digest) {
    this.#directory = directory;
    this.#capacity = capacity;
    this.#digest = digest;
  }

  lookup(id: string): ReferenceOwner | undefined {
    let text: string;
    try {
      text = readFileSync(this.#path(id, "json"), "utf8");
    } catch (error) {
      if (isErrno(error, "ENOENT")) return undefined;
      throw error;
    }
    const record = JSON.parse(text);
    if (record.version !== 1 || Object.keys(record).length !== 3) throw new TypeError("invalid record");
    return { backend: record.backend, bodyHash: record.body_hash };
  }

  claim(id: string, body: string, choose: () => string): ReferenceClaim {
    return this.locked(() => {
      const found = this.lookup(id);
      const bodyHash = this.#digest.bodyHash(body);
      if (found !== undefined)
        return found.bodyHash === bodyHash ? { kind: "existing", owner: found } : { kind: "conflict" };
      if (this.count() >= this.#capacity) return { kind: "full" };
      const owner = { backend: choose(), bodyHash };
      this.#publish(id, owner);
      return { kind: "new", owner };
    });
  }

  retire(id: string, quarantineMs: number, nowMs: number): boolean {
    return this.locked(() => {
      const path = this.#path(id, "json");
      const ageMs = this.#age(path, nowMs);
      if (ageMs === undefined) return false;
      if (ageMs >= quarantineMs) {
        unlinkSync(path);
        remove(this.#path(id, "retired"));
        this.#syncDirectory();
        return true;
      }
      const mark = openSync(
        this.#path(id, "retired"),
        constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC,
        0o600,
      );
      fsyncSync(mark);
      closeSync(mark);
      this.#syncDirectory();
      return false;
    });
  }

  sweep(quarantineMs: number, nowMs: number): number {
    return this.locked(() => {
      let removedCount = 0;
      for (const name of readdirSync(this.#directory)) {
        if (extname(name) !== ".retired") continue;
        const mark = join(this.#directory, name);
        const path = join(this.#directory, `${name.slice(0, -".retired".length)}.json`);
        const ageMs = this.#age(path, nowMs);
        if (ageMs !== undefined && ageMs < quarantineMs) continue;
        if (ageMs !== undefined) {
          unlinkSync(path);
          removedCount += 1;
        }
        unlinkSync(mark);
        this.#syncDirectory();
      }
      return removedCount;
    });
  }

  count(): number {
    return readdirSync(this.#directory).filter((name) => extname(name) === ".json").length;
  }

  /** Does something while it holds the lock. @throws ReferenceBusyError at once if another holds it */
  locked<T>(act: () => T): T {
    const fd = openSync(join(this.#directory, "ownership.lock"), constants.O_RDWR | constants.O_CREAT);
    try {
      if (!tryLock(fd)) throw new ReferenceBusyError("the lock is held");
      return act();
    } finally {
      closeSync(fd);
    }
  }

  #publish(id: string, { backend, bodyHash }: ReferenceOwner): void {
    this.#stagedCount += 1;
    const staged = join(this.#directory, `.tmp${process.pid}x${this.#stagedCount}`);
    const fd = openSync(staged, "wx", 0o600);
    writeSync(fd, `{"version":1,"backend":"${backend}","body_hash":"${bodyHash}"}`);
    fsyncSync(fd);
    closeSync(fd);
    linkSync(staged, this.#path(id, "json"));
    unlinkSync(staged);
    this.#syncDirectory();
  }

  #syncDirectory(): void {
    const fd = openSync(this.#directory, "r");
    fsyncSync(fd);
    closeSync(fd);
  }

  #age(path: string, nowMs: number): number | undefined {
    const status = statSync(path, { throwIfNoEntry: false });
    return status === undefined ? undefined : nowMs - status.mtimeMs;
  }

  #path(id: string, extension: string): string {
    return join(this.#directory, `${this.#digest.key(id)}.${extension}`);
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (!isErrno(error, "ENOENT")) throw error;
  }
}

function isErrno(error: unknown, errno: string): boolean {
  return error instanceof Error && "code" in error && error.code === errno;
}
