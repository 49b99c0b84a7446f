// One dispatcher that takes calls and does not answer must not use up the room for calls to all others.

/** How long a dispatcher with many waiting calls may be silent. */
const silentMs = 2_000;

interface Load {
  pendingCount: number;
  /** Since when it has not answered. */
  quietSinceMs: number;
}

/** Counts the calls that wait for each dispatcher. */
export class SilenceGuard {
  readonly #limitCount: number;
  readonly #loads = new Map<string, Load>();

  /** @param limitCount how many calls may wait for a silent one */
  constructor(limitCount: number) {
    this.#limitCount = limitCount;
  }

  /** Whether one more call is pointless: as many as may wait for it, and it has not answered for two seconds. */
  isSilent(origin: string, nowMs: number): boolean {
    const load = this.#loads.get(origin);
    return (
      load !== undefined && load.pendingCount >= this.#limitCount && nowMs - load.quietSinceMs >= silentMs
    );
  }

  /** A call begins. */
  begin(origin: string, nowMs: number): void {
    const load = this.#loads.get(origin);
    if (load === undefined) this.#loads.set(origin, { pendingCount: 1, quietSinceMs: nowMs });
    else load.pendingCount += 1;
  }

  /** A call ended, with an answer or without. */
  end(origin: string, isAnswered: boolean, nowMs: number): void {
    const load = this.#loads.get(origin);
    if (load === undefined) return;
    load.pendingCount -= 1;
    if (isAnswered) load.quietSinceMs = nowMs;
    if (load.pendingCount === 0) this.#loads.delete(origin);
  }
}
