/** Waits until a condition holds; fails after `boundMs`. */
export async function until(what: string, holds: () => boolean, boundMs = 10_000): Promise<void> {
  const deadlineMs = performance.now() + boundMs;
  while (!holds()) {
    if (performance.now() > deadlineMs) throw new Error(`no ${what} within ${boundMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
