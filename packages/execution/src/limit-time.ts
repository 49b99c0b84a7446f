// One signal for a call that ends with the caller's signal or when time is up, and leaves no timer behind.

export interface TimeLimit {
  readonly signal: AbortSignal;
  /** Stops the clock. */
  clear(): void;
}

export function limitTime(ms: number, outer: AbortSignal | undefined): TimeLimit {
  const controller = new AbortController();
  const timer = setTimeout(() => {
    controller.abort(new DOMException(`no answer within ${Math.round(ms)} ms`, "TimeoutError"));
  }, ms);
  const give = () => controller.abort(outer?.reason);
  if (outer?.aborted === true) give();
  outer?.addEventListener("abort", give, { once: true });
  return {
    signal: controller.signal,
    clear() {
      clearTimeout(timer);
      outer?.removeEventListener("abort", give);
    },
  };
}

/** The value of a promise, or a rejection with the signal's reason as soon as it aborts: for work that knows no signals. */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const give = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", give, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", give);
  }
}
