/** Waits for work, but no longer than that. What it answers or throws is left to those who look at it. */
export async function withinMs(boundMs: number, work: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, boundMs);
  try {
    await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
