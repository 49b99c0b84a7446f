// How many requests may be busy with one dispatcher at once: whatever becomes of it, others find room.
import { BackendError } from "../errors.ts";

/** What {@link OriginTurns} are made with. */
export interface OriginTurnsOptions {
  /** How many there are for each dispatcher. */
  readonly limitCount: number;
  /** Whether a dispatcher that many wait for answers nobody. Then nobody waits for a turn. */
  readonly isSilent: (origin: string) => boolean;
  /** Nobody waits any more. */
  readonly signal: AbortSignal;
}

/** How often those in line look whether their dispatcher is silent. */
const lookMs = 100;

interface Waiter {
  readonly resolve: (leave: () => void) => void;
  readonly reject: (error: BackendError) => void;
}

interface Line {
  takenCount: number;
  readonly waiters: Waiter[];
  timer: NodeJS.Timeout | undefined;
}

/** Turns at each dispatcher, first come, first served. */
export class OriginTurns {
  readonly #options: OriginTurnsOptions;
  readonly #lines = new Map<string, Line>();

  constructor(options: OriginTurnsOptions) {
    this.#options = options;
    options.signal.addEventListener("abort", () => {
      for (const origin of [...this.#lines.keys()])
        this.#refuse(origin, "is not waited for: the router stops");
    });
  }

  /** A turn where one is free at once; what it answers ends the turn. */
  take(origin: string): (() => void) | undefined {
    const line = this.#lines.get(origin) ?? { takenCount: 0, waiters: [], timer: undefined };
    if (line.takenCount >= this.#options.limitCount) return undefined;
    this.#lines.set(origin, line);
    line.takenCount += 1;
    return this.#leaveOnce(origin, line);
  }

  /**
   * Waits for one.
   * @throws BackendError (CELLKIT_ROUTER_BACKEND) when the dispatcher turns out to be silent, or the router stops
   */
  wait(origin: string): Promise<() => void> {
    const taken = this.take(origin);
    if (taken !== undefined) return Promise.resolve(taken);
    if (this.#options.signal.aborted)
      return Promise.reject(new BackendError(origin, "is not waited for: the router stops", "no"));
    const line = this.#lines.get(origin) as Line;
    line.timer ??= setInterval(() => {
      if (this.#options.isSilent(origin)) this.#refuse(origin, "is silent, and many calls wait for it");
    }, lookMs);
    return new Promise((resolve, reject) => line.waiters.push({ resolve, reject }));
  }

  #leaveOnce(origin: string, line: Line): () => void {
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      const next = line.waiters.shift();
      if (line.waiters.length === 0) this.#stopLooking(line);
      if (next !== undefined) next.resolve(this.#leaveOnce(origin, line));
      else if (--line.takenCount === 0) this.#lines.delete(origin);
    };
  }

  #refuse(origin: string, problem: string): void {
    const line = this.#lines.get(origin);
    if (line === undefined) return;
    this.#stopLooking(line);
    for (const { reject } of line.waiters.splice(0)) reject(new BackendError(origin, problem, "no"));
  }

  #stopLooking(line: Line): void {
    clearInterval(line.timer);
    line.timer = undefined;
  }
}

/** One turn at a time, which may come when nobody waits for it any more: then it is over at once. */
export class HeldTurn {
  #leave: (() => void) | undefined;
  #isOver = false;

  /** Has this one, and ends one that it had. */
  hold(leave: () => void): void {
    this.#leave?.();
    this.#leave = leave;
    if (this.#isOver) leave();
  }

  /** Ends it, and all to come. */
  end(): void {
    this.#isOver = true;
    this.#leave?.();
  }
}
