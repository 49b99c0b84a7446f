// When a failed call may be made again (docs/protocol/signed-requests.md, "Retries"): only what proves that no handler
// ran may be repeated.
import type { PeerVersion } from "./constants.ts";

/**
 * What a failure proves: `not-owner`, the node said that it is not the owner and ran nothing; `never-connected`, there
 * was no connection; `ambiguous`, nothing: the handler may have run.
 */
export type RetryClass = "not-owner" | "never-connected" | "ambiguous";

/** What is known about a failed attempt. */
export interface FailedAttempt {
  /** Whether a TCP connection stood. */
  readonly connected: boolean;
  /** Of the answer, when there was one with the right version header. */
  readonly status?: number | undefined;
  /** Whether that answer carried the stale marker. */
  readonly staleMarker?: boolean | undefined;
}

/** The class of a failure. The stale marker counts on status 409 only, since an application may set it elsewhere. */
export function retryClassOf({ connected, status, staleMarker }: FailedAttempt): RetryClass {
  if (!connected) return "never-connected";
  return status === 409 && staleMarker === true ? "not-owner" : "ambiguous";
}

/** How often each class was retried in this call. */
interface RetriesDone {
  readonly notOwner: number;
  readonly neverConnected: number;
}

/** A call whose last attempt failed. */
export interface FailedCall {
  readonly version: PeerVersion;
  readonly failure: RetryClass;
  readonly done: RetriesDone;
  /** Whether any of a streamed body was sent: such a call is never repeated. */
  readonly bodyStarted: boolean;
}

/** What may happen after a failed attempt; `another-owner` waits for a route to a different node or epoch. */
export type RetryDecision = "fail" | "retry" | "another-owner";

/**
 * Decides whether a call is made again. Version 2 retries either class once. Version 5 waits for another owner as long as
 * the call's deadline allows, and retries a failed connection once. In every case the cached route is dropped first.
 */
export function decideRetry({ version, failure, done, bodyStarted }: FailedCall): RetryDecision {
  if (failure === "ambiguous" || bodyStarted) return "fail";
  if (failure === "never-connected") return done.neverConnected === 0 ? "retry" : "fail";
  if (version === 5) return "another-owner";
  return done.notOwner === 0 ? "retry" : "fail";
}

const firstBackoffMs = 10;
const maxBackoffMs = 250;

/** How long to wait before the route is read again: 10 ms, doubled each time, at most 250 ms. @param attempt from 0 */
export function routeBackoffMs(attempt: number): number {
  return Math.min(maxBackoffMs, firstBackoffMs * 2 ** Math.min(attempt, 16));
}
