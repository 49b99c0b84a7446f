import { setTimeout as sleep } from "node:timers/promises";

/**
 * Waits until a condition answers something other than undefined or false; fails after the deadline with its name. It is only
 * there so that something is said: a busy machine takes seconds for what takes milliseconds elsewhere.
 */
export async function until<T>(
  name: string,
  condition: () => T | undefined | false | Promise<T | undefined | false>,
  deadlineMs = 30_000,
): Promise<T> {
  const endMs = performance.now() + deadlineMs;
  for (;;) {
    const value = await condition();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > endMs) throw new TypeError(`did not happen within ${deadlineMs} ms: ${name}`);
    await sleep(10);
  }
}
