/** What follows from the answer to an upgrade request, or from none. */
import type { SocketAction } from "./socket-action.ts";

/** How an upgrade ended that did not end in an open WebSocket. */
export type UpgradeFailure =
  /** An HTTP answer other than 101. `drained`: it carried the complete drain marker. */
  | {
      readonly kind: "status";
      readonly status: number;
      readonly drained: boolean;
      readonly retryAfterMs: number | undefined;
    }
  /** No answer: refused, reset, DNS, TLS, timeout. */
  | { readonly kind: "unreachable" }
  /** A 101 that is none: bad accept key, a subprotocol or an extension nobody asked for. */
  | { readonly kind: "bad-handshake" }
  /** The caller's `headers` or `target` function failed: no node was asked. */
  | { readonly kind: "not-prepared" };

/** What to do after a failed upgrade. */
export type UpgradeAction =
  /** The next candidate of this round, now. */
  | { readonly kind: "next-node" }
  /** This round is over; wait. `floorMs`: not earlier than that. */
  | { readonly kind: "backoff"; readonly floorMs: number }
  /** Once at once when headers or target can change, else never. */
  | { readonly kind: "authorize" }
  | { readonly kind: "never" };

/** Longest wait that a server can ask a socket for with Retry-After: an hour. */
export const MAX_RETRY_AFTER_MS = 3_600_000;

const NEXT_NODE: UpgradeAction = { kind: "next-node" };
const NEVER: UpgradeAction = { kind: "never" };
const AUTHORIZE: UpgradeAction = { kind: "authorize" };
const BACKOFF: UpgradeAction = { kind: "backoff", floorMs: 0 };

/**
 * The action after a failed upgrade.
 *
 * @param override what the application's `classifyUpgrade` said; it is not asked about a drain refusal
 */
export function upgradeAction(failure: UpgradeFailure, override?: SocketAction): UpgradeAction {
  if (failure.kind === "unreachable") return NEXT_NODE;
  if (failure.kind === "bad-handshake") return NEVER;
  if (failure.kind === "not-prepared") return BACKOFF;
  if (failure.drained) return NEXT_NODE;
  if (override !== undefined) return overridden(override, failure.retryAfterMs);
  const { status } = failure;
  if (status === 401 || status === 403) return AUTHORIZE;
  if (status === 425 || status === 429) return backoff(failure.retryAfterMs);
  return status === 408 || status >= 500 ? BACKOFF : NEVER;
}

function overridden(action: SocketAction, retryAfterMs: number | undefined): UpgradeAction {
  if (action === "at-once") return NEXT_NODE;
  return action === "never" ? NEVER : backoff(retryAfterMs);
}

function backoff(retryAfterMs: number | undefined): UpgradeAction {
  return { kind: "backoff", floorMs: Math.min(retryAfterMs ?? 0, MAX_RETRY_AFTER_MS) };
}
