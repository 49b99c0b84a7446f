/** What an agent does with the lock of the ledger in its probe: the file and the call that a ledger in a directory uses. */
import { closeSync, openSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { tryLock, unlock } from "@cellkit/bucket/flock";
import koffi from "koffi";
import { LedgerAgentError } from "../errors.ts";
import type { AgentAnswer } from "./agent-protocol.ts";

const F_ULOCK = 0;
const F_TLOCK = 2;

/** How long a holder stays inside when it counts, so that another one could get in. */
const INSIDE_MS = 1;

/** `flock` as a ledger takes it; tests put a broken one in its place. */
export interface Flock {
  tryLock(fd: number): boolean;
  unlock(fd: number): void;
}

const realFlock: Flock = { tryLock: (fd) => tryLock(fd), unlock };

/** One agent's view of the lock. */
export class AgentLock {
  readonly #path: string;
  readonly #flock: Flock;
  #held: number | undefined;

  constructor(path: string, flock: Flock = realFlock) {
    this.#path = path;
    this.#flock = flock;
  }

  /** Takes it and keeps it. */
  async lock(waitMs: number): Promise<AgentAnswer<"lock">> {
    const began = performance.now();
    const fd = openSync(this.#path, "a+", 0o600);
    for (;;) {
      if (this.#flock.tryLock(fd)) break;
      if (performance.now() - began > waitMs) {
        closeSync(fd);
        return { kind: "busy", ms: performance.now() - began };
      }
      await delay(1);
    }
    this.#held = fd;
    return { kind: "free", ms: performance.now() - began };
  }

  unlock(): void {
    if (this.#held === undefined) return;
    this.#flock.unlock(this.#held);
    closeSync(this.#held);
    this.#held = undefined;
  }

  /** Whether it could be taken now; it is given back at once. */
  contend(): AgentAnswer<"contend"> {
    const began = performance.now();
    const fd = openSync(this.#path, "a+", 0o600);
    try {
      const free = this.#flock.tryLock(fd);
      if (free) this.#flock.unlock(fd);
      return { kind: free ? "free" : "busy", ms: performance.now() - began };
    } finally {
      closeSync(fd);
    }
  }

  /** The same with fcntl's locks of a region, which are another kind. */
  contendFcntl(): AgentAnswer<"contendFcntl"> {
    const lockf = koffi.load(null).func("int lockf(int fd, int operation, long length)") as (
      fd: number,
      operation: number,
      length: number,
    ) => number;
    const began = performance.now();
    const fd = openSync(this.#path, "a+", 0o600);
    try {
      const free = lockf(fd, F_TLOCK, 0) === 0;
      const errno = koffi.errno();
      if (!free && errno !== constants.errno.EAGAIN && errno !== constants.errno.EACCES)
        throw new LedgerAgentError("this agent", `lockf failed, errno ${errno}`);
      if (free) lockf(fd, F_ULOCK, 0);
      return { kind: free ? "free" : "busy", ms: performance.now() - began };
    } finally {
      closeSync(fd);
    }
  }

  /** Counts in a file, each time under the lock. Answers how often somebody else was inside, too. */
  async increment(directory: string, count: number): Promise<AgentAnswer<"increment">> {
    let overlapCount = 0;
    const counter = `${directory}/counter`;
    const inside = `${directory}/inside`;
    for (let at = 0; at < count; at++) {
      while ((await this.lock(1_000)).kind === "busy");
      try {
        writeFileSync(inside, "", { flag: "wx" });
      } catch {
        overlapCount += 1;
      }
      const number = Number(readFileSync(counter, "utf8"));
      await delay(INSIDE_MS);
      writeFileSync(counter, String(number + 1));
      try {
        unlinkSync(inside);
      } catch {
        // Somebody else who was inside removed it: they counted that.
      }
      this.unlock();
    }
    return { overlapCount };
  }
}
