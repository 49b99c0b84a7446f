/** Waits until a condition holds; fails after `boundMs`, which a machine that has no time for us must not reach. */
export async function until(what: string, holds: () => boolean, boundMs = 30_000): Promise<void> {
  const deadlineMs = performance.now() + boundMs;
  while (!holds()) {
    if (performance.now() > deadlineMs) throw new Error(`no ${what} within ${boundMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
