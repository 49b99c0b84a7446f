/** How often a condition is looked at. */
const everyMs = 10;

/** Waits until `condition` answers something other than undefined or false, and answers that; fails after `boundMs`: long, since a busy machine may stop a process for seconds. */
export async function until<T>(
  what: string,
  condition: () => Promise<T | undefined | false> | T | undefined | false,
  boundMs = 30_000,
): Promise<T> {
  const deadlineMs = performance.now() + boundMs;
  for (;;) {
    const value = await condition();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > deadlineMs) throw new Error(`no ${what} within ${boundMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
