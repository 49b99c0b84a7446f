// Calls that can be cancelled, and cancellations that came before their call (spec A5, B5).

import type { PeerCall } from "./peer-call.ts";

/** How long a cancellation waits for its call. */
const tombstoneMs = 600_000;
/** Most cancellations that wait; the oldest goes first. Each takes some 400 bytes. */
const tombstoneCount = 10_000;

export class CallRegistry {
  readonly #running = new Map<string, { call: PeerCall; cut: () => void }>();
  /** When each was left, in that order. */
  readonly #tombstones = new Map<string, number>();

  /** @param cut ends the connection of the call @returns false when the call was cancelled before it came */
  begin(call: PeerCall, cut: () => void, nowMs: () => number): boolean {
    const key = keyOf(call.scope, call.requestId);
    if (key === undefined) return true;
    const leftMs = this.#tombstones.get(key);
    if (leftMs !== undefined) {
      this.#tombstones.delete(key);
      if (nowMs() - leftMs <= tombstoneMs) return false;
    }
    this.#running.set(key, { call, cut });
    return true;
  }

  end(call: PeerCall): void {
    const key = keyOf(call.scope, call.requestId);
    if (key !== undefined && this.#running.get(key)?.call === call) this.#running.delete(key);
  }

  cancel(scope: string, requestId: string, nowMs: number): void {
    const key = `${scope}/${requestId}`;
    const running = this.#running.get(key);
    if (running !== undefined) {
      this.#running.delete(key);
      running.call.abort();
      running.cut();
      return;
    }
    this.#tombstones.delete(key);
    this.#tombstones.set(key, nowMs);
    for (const [old, leftMs] of this.#tombstones) {
      if (this.#tombstones.size <= tombstoneCount && nowMs - leftMs <= tombstoneMs) break;
      this.#tombstones.delete(old);
    }
  }

  /** Cancellations that wait for their call. */
  get tombstoneCount(): number {
    return this.#tombstones.size;
  }
}

function keyOf(scope: string, requestId: string | undefined): string | undefined {
  return requestId === undefined ? undefined : `${scope}/${requestId}`;
}
