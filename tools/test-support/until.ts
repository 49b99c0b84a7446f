import { setTimeout as pause } from "node:timers/promises";

/** How often a condition is looked at. */
const everyMs = 10;
/** The real clock, which a test may hold still; the pause above is not the global timer for the same reason. */
const nowMs = performance.now.bind(performance);

/**
 * Waits until `condition` answers something other than undefined or false, and answers that; fails after `boundMs`, which is
 * only there so that something is said: a busy machine takes seconds for what takes milliseconds elsewhere.
 */
export async function until<T>(
  what: string,
  condition: () => Promise<T | undefined | false> | T | undefined | false,
  boundMs = 60_000,
): Promise<T> {
  const deadlineMs = nowMs() + boundMs;
  for (;;) {
    const value = await condition();
    if (value !== undefined && value !== false) return value;
    if (nowMs() > deadlineMs) throw new Error(`no ${what} within ${boundMs} ms`);
    await pause(everyMs);
  }
}
