import type { BackendBounds } from "./backend/dispatchers.ts";
import { RouterOptionError } from "./errors.ts";

/** What bounds a router; each has a default. */
export interface RouterLimits extends Partial<BackendBounds> {
  /** Open connections of callers; more are closed at once. @default 16_384 */
  readonly connectionCount?: number;
  /**
   * Requests that run at once; more wait for their turn. Each uses up to two connections to dispatchers. Where half
   * of them wait for one dispatcher that has not answered for two seconds, further reads and cancellations of its executions are answered
   * 503 at once. @default 1_024
   */
  readonly runningCount?: number;
}

/** {@link RouterLimits} with every default filled in. */
export type ResolvedLimits = Required<RouterLimits>;

/** The defaults; times and the size of an answer are the original's. */
export const defaultLimits: ResolvedLimits = {
  connectionCount: 16_384,
  runningCount: 1_024,
  connectMs: 3_000,
  operationMs: 10_000,
  answerBytes: 16_777_216,
  totalAnswerBytes: 268_435_456,
};

/** @throws RouterOptionError (CELLKIT_ROUTER_OPTION) for a limit that is no positive integer */
export function resolveLimits(limits: RouterLimits = {}): ResolvedLimits {
  const resolved = { ...defaultLimits, ...limits };
  for (const [name, value] of Object.entries(resolved)) {
    if (!Number.isSafeInteger(value) || value < 1)
      throw new RouterOptionError(`the limit ${name} must be an integer of 1 or more, not ${value}`);
  }
  return resolved;
}
