// Follows an endpoint source for as long as the fleet lives.
import { setTimeout as sleep } from "node:timers/promises";
import type { Endpoint, EndpointSource } from "./endpoints.ts";
import { events } from "./events.ts";

/** Restart of a source that threw or ended: random(0, min(max, base x 2^n)). */
const RESTART_BASE_MS = 250;
const RESTART_MAX_MS = 30_000;

/**
 * Hands every set to `take`. A source that throws or ends is started again with full jitter; until then the last set
 * stays. Ends when the signal aborts; never rejects.
 */
export async function followSource(
  source: EndpointSource,
  take: (set: readonly Endpoint[]) => void,
  { signal, random }: { signal: AbortSignal; random: () => number },
): Promise<void> {
  for (let restarts = 0; !signal.aborted; restarts += 1) {
    const iterator = source[Symbol.asyncIterator]();
    // A source that waits (for DNS, for a watch) has to be told that nobody listens any more.
    const stop = (): void => void iterator.return?.()?.catch(() => undefined);
    signal.addEventListener("abort", stop);
    try {
      for (;;) {
        const result = await iterator.next();
        if (signal.aborted) return;
        if (result.done === true) break;
        take(result.value);
        restarts = 0;
      }
    } catch (error) {
      if (events.endpoints.hasSubscribers) {
        events.endpoints.publish({ added: [], removed: [], stale: true, error });
      }
    } finally {
      signal.removeEventListener("abort", stop);
    }
    const ceilingMs = Math.min(RESTART_MAX_MS, RESTART_BASE_MS * 2 ** Math.min(restarts, 16));
    await sleep(random() * ceilingMs, undefined, { signal, ref: false }).catch(() => undefined);
  }
}
