// What becomes of a request (execution API, sections 2.4 and 5): decisions as values, in the order in which the original makes them.
import { maxNodes } from "@cellkit/execution/contract";
import type { Claim, Owner } from "@cellkit/ledger";
import type { Refusal } from "./answer.ts";
import { type Credentials, isAuthorized } from "./credentials.ts";
import type { RequestHead } from "./request-head.ts";
import { isScoped, type Route, routeOf } from "./route.ts";

/** The most bytes of a request body. */
const maxBodyBytes = 65_536;
/** The longest pin, in bytes. */
const maxPinBytes = 1024;
/** The most backends that are asked for their capabilities: as many as an answer may list. */
export const maxProbedCount = maxNodes;

/** What is to be done with an authorized request. A pin is one of the origins. */
export type Call =
  | { readonly kind: "submit"; readonly pin: string | undefined; readonly bodyBytes: number }
  | { readonly kind: "prewarm"; readonly pin: string; readonly bodyBytes: number }
  | { readonly kind: "read" | "audit" | "cancel"; readonly id: string }
  | { readonly kind: "capabilities" };

/** Whether a request is refused before any credential is read: a scoped call, which this router does not serve. */
export function refuseScoped(head: RequestHead): Refusal | undefined {
  return isScoped(head.path) ? "scoped-disabled" : undefined;
}

/** Whether a request's token is good for its method and path. Nothing else of the plane is looked at for one whose token is not. */
export function refuseCaller(
  { method, path, authorization }: RequestHead,
  credentials: Credentials,
): Refusal | undefined {
  return isAuthorized(method, path, authorization, credentials) ? undefined : "unauthorized";
}

/**
 * Judges an authorized request by its head.
 * @param origins the backends known at this moment
 * @returns a call, or why there is none
 */
export function decideCall(head: RequestHead, origins: readonly string[]): Call | Refusal {
  const { method, path, pin, contentLength } = head;
  const route = routeOf(method, path);
  if (pin === undefined) return callOf(route, undefined, contentLength);
  // A pin has one character a byte, as the header had; origins are compared with it by their UTF-8 bytes.
  const pinned = pin.length <= maxPinBytes ? origins.find((origin) => toLatin1(origin) === pin) : undefined;
  if (pinned === undefined) return "unknown-pin";
  if (route.kind !== "submit" && route.kind !== "prewarm") return "misplaced-pin";
  return callOf(route, pinned, contentLength);
}

function callOf(route: Route, pin: string | undefined, bodyBytes: number): Call | Refusal {
  const isOutOfBounds = bodyBytes === 0 || bodyBytes > maxBodyBytes;
  switch (route.kind) {
    case "submit":
      return isOutOfBounds ? "body-size" : { kind: "submit", pin, bodyBytes };
    case "prewarm":
      if (pin === undefined) return "pin-required";
      return isOutOfBounds ? "prewarm-size" : { kind: "prewarm", pin, bodyBytes };
    case "cancel":
      return bodyBytes === 0 ? route : "cancel-body";
    case "read":
    case "audit":
      return route;
    case "capabilities":
      return { kind: "capabilities" };
    case "parents":
      return "no-parents";
    case "scoped":
      return "scoped-disabled";
    default:
      return "not-found";
  }
}

function toLatin1(text: string): string {
  return Buffer.from(text).toString("latin1");
}

/** What a claim's answer allows: the one POST, a GET to the recorded owner, or nothing. */
export type Submission =
  | { readonly kind: "post" | "get"; readonly owner: Owner }
  | { readonly kind: "refuse"; readonly refusal: Refusal };

/** @param pin where the caller wants the work, if it said so */
export function decideSubmission(claim: Claim, pin: string | undefined): Submission {
  if (claim.kind === "conflict" || claim.kind === "full") return { kind: "refuse", refusal: claim.kind };
  if (claim.kind === "new") return { kind: "post", owner: claim.owner };
  return pin === undefined || pin === claim.owner.backend
    ? { kind: "get", owner: claim.owner }
    : { kind: "refuse", refusal: "other-backend" };
}

/** Whether a recorded owner may be asked; no credential goes to one that is not configured. */
export function decideOwner(owner: Owner | undefined, origins: readonly string[]): Owner | Refusal {
  if (owner === undefined) return "unknown-execution";
  return origins.includes(owner.backend) ? owner : "owner-removed";
}

/**
 * Whether an owner's answer goes to the caller as it is. An owner that does not know an id of its own has lost it, and 404 at the router
 * means that the id was never claimed.
 * @param status undefined where there was no usable answer
 */
export function decideOwnerAnswer(status: number | undefined): "relay" | Refusal {
  return status === undefined || status === 404 ? "owner-lost" : "relay";
}
