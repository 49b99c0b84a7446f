// What a router tells of itself, for metrics and logs. No event holds a token, an id or a body.

import type { NodeFigures } from "@cellkit/execution/contract";
import type { Refusal } from "./core/answer.ts";
import type { CredentialError } from "./errors.ts";

/** The calls of the router's API; `none` is a path that is none of them, or a head that was refused before its path counted. */
export type RequestRoute = "submit" | "read" | "audit" | "cancel" | "prewarm" | "capabilities" | "none";

/** The calls that the router makes. */
export type BackendCallKind = "health" | "submit" | "read" | "audit" | "cancel" | "prewarm" | "capabilities";

/**
 * - `request`: a connection had its answer, or ended without one (`status` undefined). `refusal` names an answer of the router's own.
 * - `dropped`: a connection over the limit was closed at once.
 * - `credentials`: the tokens cannot be used; every request is answered 503 until they can.
 * - `claim`: the ledger answered, or failed with a code (`CELLKIT_LEDGER_…`), its message, and the code of what lies under it, such
 *   as `ECONNREFUSED`.
 * - `lookup`: the ledger could not be read for a call about an execution; told as a claim's failure is.
 * - `placed`: a new id was bound to this backend, and its one POST follows.
 * - `uncertain`: that POST had no usable answer, or the router had to stop while the id was being bound; the caller was told so. The
 *   backend keeps the id.
 * - `backend`: a call to a backend was answered, or failed (`problem`, without secrets).
 * - `health`: a backend was asked whether it takes new work. `node` is what it calls itself.
 * - `capabilities`: a fan-out ended; `sharedCount` further callers had the same answer.
 * - `defect`: something of the router's own, or a placement rule, failed in a way that there is no answer for. The caller was told what is
 *   safe. A rule's error is the `cause`, with whatever the rule writes into its message.
 */
export type RouterEvent =
  | {
      readonly kind: "request";
      readonly route: RequestRoute;
      readonly status: number | undefined;
      readonly refusal: Refusal | undefined;
      readonly durationMs: number;
    }
  | { readonly kind: "dropped" }
  | { readonly kind: "credentials"; readonly error: CredentialError }
  | {
      readonly kind: "claim";
      readonly result: "new" | "existing" | "conflict" | "full" | "failed";
      readonly code: string | undefined;
      readonly problem: string | undefined;
      readonly cause: string | undefined;
      readonly durationMs: number;
    }
  | {
      readonly kind: "lookup";
      readonly result: "failed";
      readonly code: string | undefined;
      readonly problem: string | undefined;
      readonly cause: string | undefined;
      readonly durationMs: number;
    }
  | { readonly kind: "placed" | "uncertain"; readonly backend: string }
  | {
      readonly kind: "backend";
      readonly call: BackendCallKind;
      readonly backend: string;
      readonly status: number | undefined;
      readonly problem: string | undefined;
      readonly durationMs: number;
    }
  | {
      readonly kind: "health";
      readonly backend: string;
      readonly healthy: boolean;
      readonly node: NodeFigures | undefined;
    }
  | {
      readonly kind: "capabilities";
      readonly nodeCount: number;
      readonly eligibleCount: number;
      readonly sharedCount: number;
      readonly durationMs: number;
    }
  | { readonly kind: "defect"; readonly error: unknown };

/** Takes events; called at once, so it must be quick. What it throws becomes an uncaught exception and harms no request. */
export type RouterListener = (event: RouterEvent) => void;

/** A listener that cannot make the router fail. */
export function guardListener(listener: RouterListener | undefined): RouterListener {
  if (listener === undefined) return () => undefined;
  return (event) => {
    try {
      listener(event);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  };
}
