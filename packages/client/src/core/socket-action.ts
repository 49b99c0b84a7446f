/**
 * The three answers that every failed upgrade and every lost connection gets, and the delays behind them.
 * Nothing here waits or draws a random number by itself: `random` is handed in, in [0, 1).
 */

/**
 * What a `CellSocket` does after a failed upgrade or a lost connection.
 *
 * - `never`: stays closed.
 * - `backoff`: dials again after a random delay below a ceiling that doubles.
 * - `at-once`: dials again without backoff (after a lost connection: spread over `spreadMs`).
 */
export type SocketAction = "never" | "backoff" | "at-once";

/** Bounds of the delays between two dials, in milliseconds. */
export interface BackoffPolicy {
  /** Ceiling of the first backoff. */
  readonly baseMs: number;
  /** Ceiling of every backoff. */
  readonly maxMs: number;
  /** Sockets that lost an open connection start their first dial within this time. */
  readonly spreadMs: number;
}

/** Ceiling of the pause between two candidates of one round, once a connection was lost: a crowd must not move from node to node in step. */
export const CANDIDATE_GAP_MS = 100;

/** Beyond this many doublings every ceiling is the policy's maximum; keeps the power of two finite. */
const MOST_DOUBLINGS = 30;

/**
 * The delay before a dial after `failures` earlier failures: full jitter below min(maxMs, baseMs × 2^failures).
 *
 * @param atLeastMs raises the ceiling (not the delay), for peers that asked for more time
 */
export function backoffDelayMs(
  policy: BackoffPolicy,
  failures: number,
  random: number,
  atLeastMs = 0,
): number {
  const doubled = policy.baseMs * 2 ** Math.min(failures, MOST_DOUBLINGS);
  return random * Math.min(policy.maxMs, Math.max(doubled, atLeastMs));
}
