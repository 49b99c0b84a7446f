import { setTimeout as pause } from "node:timers/promises";
import { WaitTimeoutError } from "./errors.ts";

const lookEveryMs = 2;

/** How long to wait for something. */
export interface WaitOptions {
  /** @default 10 000 */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Waits until a condition holds, and answers what it answered.
 *
 * @param what what is waited for, in words, for the error
 * @throws {@link WaitTimeoutError} (`CELLKIT_TESTING_TIMEOUT`), the signal's reason, or what the condition throws
 */
export async function until<T>(
  what: string,
  condition: () => T | undefined | false | Promise<T | undefined | false>,
  { timeoutMs = 10_000, signal }: WaitOptions = {},
): Promise<T> {
  const endMs = performance.now() + timeoutMs;
  for (;;) {
    const value = await condition();
    if (value !== undefined && value !== false) return value;
    signal?.throwIfAborted();
    if (performance.now() > endMs) throw new WaitTimeoutError(what, timeoutMs);
    await pause(lookEveryMs);
  }
}
