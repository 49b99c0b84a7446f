// Whether and when a call is tried again. One place, one table; everything it needs is an argument.
import type { AttemptClass } from "./attempt-class.ts";

/** What is known when an attempt has ended. */
export interface Situation {
  readonly class: AttemptClass;
  /** Attempts made, this one included. */
  readonly attemptCount: number;
  readonly maxAttempts: number;
  /** Idempotent or keyed. */
  readonly repeatable: boolean;
  /** Whether the body can be sent again. */
  readonly replayable: boolean;
  /** Whether the call had its free retry. */
  readonly freeUsed: boolean;
  /** Charged retries so far. */
  readonly chargedCount: number;
  /** Another node is usable that this call has not tried. */
  readonly otherNode: boolean;
  /** The only endpoint hides several nodes. */
  readonly loadBalancedOnly: boolean;
  /** The answer's `Retry-After`; undefined when absent, past or unreadable. */
  readonly retryAfterMs: number | undefined;
  /** Until the deadline; Infinity when there is none. */
  readonly leftMs: number;
}

/** The numbers of the backoff. */
export interface BackoffRules {
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
  readonly maxRetryAfterMs: number;
}

/** Why a call is not tried again. */
export type Settled = "final" | "not-repeatable" | "body" | "attempts" | "retry-after";

/** What to do next. A retry that is not free costs the budget 1; without it, settle as `budget`. */
export type Plan =
  | { readonly kind: "retry"; readonly delayMs: number; readonly free: boolean }
  | { readonly kind: "settle"; readonly because: Settled };

/** Beyond `maxAttempts`: at most one try per this many milliseconds. A killed node's cells can be away for seconds. */
const SLOW_RETRY_MS = 1_000;
/** Spread of a free retry to the same load-balanced address. */
const SAME_ADDRESS_SPREAD_MS = 100;

/** Full jitter: random(0, min(max, base x 2^(n-1))), n from 1. */
export function backoffMs(n: number, rules: BackoffRules, random: number): number {
  return random * Math.min(rules.maxDelayMs, rules.baseDelayMs * 2 ** Math.min(n - 1, 30));
}

/** @param random in [0, 1) */
export function planRetry(now: Situation, rules: BackoffRules, random: number): Plan {
  const provedNotRun = now.class === "not-sent" || now.class === "refused" || now.class === "overloaded";
  const doubtful = now.class === "app-status" || now.class === "ambiguous";
  if (!provedNotRun && !doubtful) return settle("final");
  if (doubtful && !now.repeatable) return settle("not-repeatable");
  if (!now.replayable) return settle("body");
  const floorMs = floorOf(now);
  if (floorMs > rules.maxRetryAfterMs || floorMs >= now.leftMs) return settle("retry-after");
  if (now.attemptCount >= now.maxAttempts) {
    const slowMs = Math.max(SLOW_RETRY_MS * (1 + random / 2), floorMs);
    // The last answer is worth more than a wait that the deadline would end.
    const slow = doubtful && now.leftMs !== Number.POSITIVE_INFINITY && slowMs < now.leftMs;
    return slow ? retry(slowMs, false) : settle("attempts");
  }
  const elsewhere = now.otherNode || now.loadBalancedOnly;
  if ((now.class === "not-sent" || now.class === "refused") && !now.freeUsed && elsewhere) {
    return retry(Math.max(now.otherNode ? 0 : random * SAME_ADDRESS_SPREAD_MS, floorMs), true);
  }
  return retry(Math.max(backoffMs(now.chargedCount + 1, rules, random), floorMs), false);
}

/**
 * `Retry-After` of a refusal speaks of the node that leaves, so it delays only where the next try may meet that node
 * again: behind one load-balanced address, from the third attempt on.
 */
function floorOf(now: Situation): number {
  const { retryAfterMs = 0 } = now;
  if (now.class === "app-status" || now.class === "overloaded" || now.class === "ambiguous")
    return retryAfterMs;
  return now.loadBalancedOnly && now.attemptCount >= 2 ? retryAfterMs : 0;
}

function retry(delayMs: number, free: boolean): Plan {
  return { kind: "retry", delayMs, free };
}

function settle(because: Settled): Plan {
  return { kind: "settle", because };
}

/**
 * Milliseconds that a `Retry-After` asks for; undefined when it is absent, past or unreadable.
 * @param nowMs since the Unix epoch
 * @param parseDate milliseconds since the Unix epoch, NaN for what is no date
 * @see RFC 9110 §10.2.3
 */
export function parseRetryAfter(
  value: string,
  nowMs: number,
  parseDate: (text: string) => number,
): number | undefined {
  const text = value.trim();
  const waitMs = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : parseDate(text) - nowMs;
  return waitMs > 0 ? waitMs : undefined;
}
