import { setTimeout as wait } from "node:timers/promises";
import { TestError } from "./test-error.ts";

/** How often a condition is looked at. */
const everyMs = 10;
/** The real clock, which a test may hold still. */
const nowMs = performance.now.bind(performance);

/** Waits until `condition` answers something other than undefined or false, and answers that; fails after `boundMs`. */
export async function until<T>(
  what: string,
  condition: () => Promise<T | undefined | false> | T | undefined | false,
  boundMs = 30_000,
): Promise<T> {
  const deadlineMs = nowMs() + boundMs;
  for (;;) {
    const value = await condition();
    if (value !== undefined && value !== false) return value;
    if (nowMs() > deadlineMs) throw new TestError(`no ${what} within ${boundMs} ms`);
    // Not the global one, which a test may hold still.
    await wait(everyMs);
  }
}
