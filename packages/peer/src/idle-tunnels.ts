// Tunnels without a call: how long each has been waiting for the whole head of its next one, or of its first.

import { performance } from "node:perf_hooks";
import type { Duplex } from "node:stream";
import { PeerOptionError } from "./errors.ts";

const mostIdleMs = 86_400_000;
const mostSweepMs = 1_000;

/** Cuts tunnels that wait too long. Bytes of a head that does not come to its end change nothing. */
export class IdleTunnels {
  readonly #idleMs: number;
  readonly #sweepMs: number;
  /** Since when each waits; in the order of that. */
  readonly #since = new Map<Duplex, number>();
  #sweep: NodeJS.Timeout | undefined;

  /**
   * @param idleMs how long a tunnel may wait, 1 to 86,400,000; it is cut a second later at most
   * @throws PeerOptionError (CELLKIT_PEER_OPTION)
   */
  constructor(idleMs: number) {
    if (!(idleMs >= 1 && idleMs <= mostIdleMs))
      throw new PeerOptionError("tunnelIdleMs", `is ${idleMs}: use 1 to ${mostIdleMs}`);
    this.#idleMs = idleMs;
    this.#sweepMs = Math.max(1, Math.min(mostSweepMs, idleMs / 4));
  }

  /** The tunnel has no call from now on. */
  wait(tunnel: Duplex): void {
    this.#since.delete(tunnel);
    this.#since.set(tunnel, performance.now());
    this.#sweep ??= setInterval(() => this.#cutLate(), this.#sweepMs).unref();
  }

  /** The tunnel has a call, or is gone. */
  settle(tunnel: Duplex): void {
    this.#since.delete(tunnel);
  }

  #cutLate(): void {
    const latestMs = performance.now() - this.#idleMs;
    for (const [tunnel, sinceMs] of this.#since) {
      if (sinceMs > latestMs) return;
      this.#since.delete(tunnel);
      tunnel.destroy();
    }
    if (this.#since.size > 0) return;
    clearInterval(this.#sweep);
    this.#sweep = undefined;
  }
}
