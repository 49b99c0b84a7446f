import type { BackendBounds } from "./backend/dispatchers.ts";
import { RouterOptionError } from "./errors.ts";

/** What bounds a router; each has a default. */
export interface RouterLimits extends Partial<BackendBounds> {
  /** Open connections of callers; more are closed at once. @default 16_384 */
  readonly connectionCount?: number;
  /**
   * Submissions and prewarmings that run at once, and as many reads, audits and cancellations; more wait for their turn. Capabilities
   * need no turn: their callers share one answer. At most half as many are busy with one dispatcher; the others of it wait outside, and
   * hold nobody up. Where as many wait for one that has not answered for two seconds, it is given no further call about executions until
   * it answers: their callers get 503 at once, and new ids go elsewhere. @default 1_024
   */
  readonly runningCount?: number;
  /** The head of a request, from the connection on. The original has no such bound. @default 15_000 */
  readonly headMs?: number;
  /** A whole request, from the connection on. The original has no such bound. @default 30_000 */
  readonly requestMs?: number;
  /** Writing an answer to its caller, however steadily it is taken. The original has no such bound. @default 60_000 */
  readonly writeMs?: number;
  /** A placement rule of the program's own: then the id stays free, and its caller is told to come again. @default 10_000 */
  readonly placementMs?: number;
}

/** {@link RouterLimits} with every default filled in. */
export type ResolvedLimits = Required<RouterLimits>;

/** The defaults; times and the size of an answer are the original's. */
export const defaultLimits: ResolvedLimits = {
  connectionCount: 16_384,
  runningCount: 1_024,
  headMs: 15_000,
  requestMs: 30_000,
  writeMs: 60_000,
  placementMs: 10_000,
  connectMs: 3_000,
  operationMs: 10_000,
  exchangeMs: 30_000,
  healthMs: 5_000,
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
