import type { CallHost } from "./call-host.ts";
import type { FleetNode } from "./fleet-node.ts";

/** Internal: the time of a call in which no attempt is alive. Its timers keep the process alive: a caller waits. */
export class CallPause {
  readonly #host: CallHost;
  readonly #call: { onDestroyed(error: Error): void };
  #timer: NodeJS.Timeout | undefined;
  #nodeWait: AbortController | undefined;

  constructor(host: CallHost, call: { onDestroyed(error: Error): void }) {
    this.#host = host;
    this.#call = call;
    host.waiting.add(call);
  }

  /** Calls `next` after `delayMs`. */
  after(delayMs: number, next: () => void): void {
    // Even without a delay the next attempt begins on a clean stack: the last one may still be in undici's hands.
    if (delayMs <= 0) queueMicrotask(next);
    else this.#timer = setTimeout(next, delayMs);
  }

  /** A node, as soon as one is usable; after `waitMs` whichever may be back first, if there is any. */
  node(tried: ReadonlySet<FleetNode>, waitMs: number): Promise<FleetNode | undefined> {
    this.#nodeWait = new AbortController();
    return this.#host.nodes.pickOrWait(tried, waitMs, this.#nodeWait.signal);
  }

  /** Ends it; nothing is called any more, but for a `next` without delay. */
  end(): void {
    this.#host.waiting.delete(this.#call);
    clearTimeout(this.#timer);
    this.#nodeWait?.abort();
  }
}
