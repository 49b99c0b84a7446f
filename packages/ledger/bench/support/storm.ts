/** Load for benchmarks of ledgers. */
import { setTimeout as sleep } from "node:timers/promises";

/** Does something so many times, so many at once; answers how often a second. */
export async function measureRate(
  waitingCount: number,
  totalCount: number,
  act: () => Promise<unknown>,
): Promise<number> {
  let left = totalCount;
  const startedMs = performance.now();
  await Promise.all(
    Array.from({ length: waitingCount }, async () => {
      while (left > 0) {
        left -= 1;
        await act();
      }
    }),
  );
  return (totalCount * 1000) / (performance.now() - startedMs);
}

/**
 * The 99th percentile of `look` in ms while a storm goes on, from when it was due, every `everyMs`, to its end. One that is slow does not
 * hold up the next.
 */
export async function measureLooks(
  storm: () => Promise<unknown>,
  look: () => Promise<unknown>,
  everyMs: number,
): Promise<number> {
  let storming = true;
  const ended = storm().finally(() => {
    storming = false;
  });
  const looks: Promise<number>[] = [];
  for (let dueMs = performance.now() + everyMs; storming; dueMs += everyMs) {
    const waitMs = dueMs - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    const startedMs = dueMs;
    looks.push(look().then(() => performance.now() - startedMs));
  }
  await ended;
  const tookMs = (await Promise.all(looks)).sort((a, b) => a - b);
  return tookMs[Math.floor(tookMs.length * 0.99)] ?? Number.NaN;
}
