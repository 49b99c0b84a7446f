/** Watches leases for as long as somebody depends on them: each is asked for again only when what is known of it is over. */

/** Options of {@link LeaseWatch}. */
export interface LeaseWatchOptions {
  /** Until when a lease holds, in milliseconds since the Unix epoch; undefined when there is none. Rejects when unknown. */
  expiryMs: (name: string) => Promise<number | undefined>;
  clock: () => number;
}

/** Pause before a question that got no answer is asked again. */
const againMs = 500;
/** A lease is not asked for more often than this, however short what is known of it. */
const leastWaitMs = 100;
/** It is asked for again after this at the latest: a timer of more than 2^31-1 ms would fire at once, again and again. */
const mostWaitMs = 60_000;

interface Watched {
  readonly lapsed: Set<() => void>;
  timer: NodeJS.Timeout | undefined;
}

/** Tells those who depend on a lease when it has lapsed. A question without an answer is no lapse. */
export class LeaseWatch {
  readonly #options: LeaseWatchOptions;
  readonly #watched = new Map<string, Watched>();

  constructor(options: LeaseWatchOptions) {
    this.#options = options;
  }

  /** Calls `lapsed` once when the lease is over. Answers how to stop caring. */
  watch(name: string, lapsed: () => void): () => void {
    const known = this.#watched.get(name);
    const watched: Watched = known ?? { lapsed: new Set(), timer: undefined };
    watched.lapsed.add(lapsed);
    if (known === undefined) {
      this.#watched.set(name, watched);
      void this.#ask(name, watched);
    }
    return () => {
      watched.lapsed.delete(lapsed);
      if (watched.lapsed.size === 0) this.#forget(name, watched);
    };
  }

  close(): void {
    for (const [name, watched] of this.#watched) this.#forget(name, watched);
  }

  #forget(name: string, watched: Watched): void {
    clearTimeout(watched.timer);
    if (this.#watched.get(name) === watched) this.#watched.delete(name);
  }

  async #ask(name: string, watched: Watched): Promise<void> {
    const { expiryMs, clock } = this.#options;
    let waitMs: number;
    try {
      const untilMs = await expiryMs(name);
      if (this.#watched.get(name) !== watched) return;
      if (untilMs === undefined || untilMs <= clock()) {
        this.#forget(name, watched);
        for (const lapsed of [...watched.lapsed]) lapsed();
        return;
      }
      waitMs = Math.min(mostWaitMs, Math.max(leastWaitMs, untilMs - clock()));
    } catch {
      // A store that does not answer proves nothing about the lease; it is asked again.
      if (this.#watched.get(name) !== watched) return;
      waitMs = againMs;
    }
    watched.timer = setTimeout(() => void this.#ask(name, watched), waitMs);
    watched.timer.unref();
  }
}
