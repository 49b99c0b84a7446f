import { setTimeout as wait } from "node:timers/promises";
import { TestError } from "./test-error.ts";

/** How often a condition is looked at. */
const everyMs = 10;

/** Waits until `condition` answers something other than undefined or false, and answers that; fails after `boundMs`. */
export async function until<T>(
  what: string,
  condition: () => Promise<T | undefined | false> | T | undefined | false,
  boundMs = 10_000,
): Promise<T> {
  const deadlineMs = performance.now() + boundMs;
  for (;;) {
    const value = await condition();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > deadlineMs) throw new TestError(`no ${what} within ${boundMs} ms`);
    // Not the global one, which a test may hold still.
    await wait(everyMs);
  }
}
