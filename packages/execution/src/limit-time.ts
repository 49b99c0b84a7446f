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

/** What reading a file gives when its time is up. */
export interface Late {
  readonly kind: "late";
  readonly problem: string;
  readonly cause: unknown;
}

/** What a file's reading gives, or that it is late as soon as the signal aborts: a network file system may hang for ever. */
export async function inTime<T>(reading: Promise<T>, signal: AbortSignal): Promise<T | Late> {
  const late = Promise.withResolvers<Late>();
  const give = () => late.resolve({ kind: "late", problem: "was not read in time", cause: signal.reason });
  if (signal.aborted) give();
  signal.addEventListener("abort", give, { once: true });
  try {
    return await Promise.race([late.promise, reading]);
  } finally {
    signal.removeEventListener("abort", give);
  }
}
