// What a router decides about a call before it looks at its ledger (execution API, sections 2.3 to 6). Of a head it looks at what an
// HTTP library leaves of it: whoever mocks a router gets requests that one has read.
import { isExecutionId } from "@cellkit/execution/contract";
import { type CallKind, routeOf } from "./call.ts";
import { requestIdOf } from "./request-id.ts";
import { isSameSecret } from "./secret.ts";
import { type Answer, refusal } from "./wire-answer.ts";

/** Longest body of a submission or a prewarm. */
const maxRouterBodyBytes = 65_536;

/** A router asks no more for their capabilities. */
const maxProbedBackends = 32;

/** A call, read. */
export interface RouterCall {
  readonly method: string;
  /** As it was asked for, with its query. */
  readonly path: string;
  readonly authorization: string | undefined;
  readonly pin: string | undefined;
  /** What stands in `Prefer`, repeats joined by commas. */
  readonly preference: string | undefined;
  /** Whether it has `Transfer-Encoding`. */
  readonly isEncoded: boolean;
  readonly body: Uint8Array;
}

/** Who may call, and where calls may go. */
export interface RouterSetup {
  readonly clientToken: string;
  readonly capabilityToken: string | undefined;
  /** The origins of the backends. */
  readonly origins: readonly string[];
}

/** What a router does with a call. `id` is there where the call is about an execution. */
export type RouterDecision =
  | { readonly kind: "answer"; readonly answer: Answer }
  | { readonly kind: "serve"; readonly call: CallKind; readonly id: string };

const notFound = answered(404, "not found");

export function decideCall(call: RouterCall, setup: RouterSetup): RouterDecision {
  const { method, path, pin } = call;
  if (call.preference !== undefined && call.preference !== "respond-async") {
    return answered(400, "unsupported or duplicate preference");
  }
  if (call.isEncoded) return answered(400, "transfer encoding unsupported");
  if (path.startsWith("/v1/scoped/")) return answered(404, "scoped receiver disabled");
  if (!isAuthorized(call, setup)) return answered(401, "unauthorized");
  const { kind, id = "" } = routeOf(method, path);
  if (pin !== undefined) {
    if (!setup.origins.includes(pin)) return answered(400, "backend pin is not configured");
    if (kind !== "submit" && kind !== "prewarm") {
      return answered(400, "backend pin only applies to submission or prewarm");
    }
  }
  if (/^\/v1\/parents(?:\/|$)/.test(path)) return answered(503, "parent routing is not configured");
  switch (kind) {
    case "capabilities":
      if (setup.origins.length > maxProbedBackends) return answered(503, "capability probe unavailable");
      return { kind: "serve", call: kind, id };
    case "submit":
      return decideSubmission(call.body);
    case "prewarm":
      return decidePrewarm(call);
    case "read":
    case "audit":
    case "cancel":
      if (!isExecutionId(id)) return notFound;
      if (kind === "cancel" && call.body.length > 0) return answered(400, "cancel body must be empty");
      return { kind: "serve", call: kind, id };
    default:
      return notFound;
  }
}

function isAuthorized({ method, path, authorization }: RouterCall, setup: RouterSetup): boolean {
  const [, scheme, token] = /^([^ ]*) (.*)$/s.exec(authorization ?? "") ?? [];
  if (scheme?.toLowerCase() !== "bearer" || token === undefined) return false;
  const isDiscovery = method === "GET" && discoveryPath.test(path);
  if (isSameSecret(token, setup.clientToken)) return true;
  return isDiscovery && setup.capabilityToken !== undefined && isSameSecret(token, setup.capabilityToken);
}

/** Cells are not listed here; who asks for them with the token of discovery hears that. */
const discoveryPath = /^\/v1\/(?:capabilities$|cells(?:$|\?))/;

function decideSubmission(body: Uint8Array): RouterDecision {
  if (body.length === 0 || body.length > maxRouterBodyBytes) {
    return answered(413, "request body exceeds 64 KiB or is empty");
  }
  const id = requestIdOf(body);
  if (id === undefined) {
    return answered(400, "id must be a nonempty ASCII alphanumeric, dash, underscore or dot path component");
  }
  return { kind: "serve", call: "submit", id };
}

function decidePrewarm({ pin, body }: RouterCall): RouterDecision {
  if (pin === undefined) return answered(400, "prewarm requires an explicit backend pin");
  if (body.length === 0 || body.length > maxRouterBodyBytes) {
    return answered(413, "prewarm body exceeds 64 KiB or is empty");
  }
  return { kind: "serve", call: "prewarm", id: "" };
}

function answered(status: number, error: string): RouterDecision {
  return { kind: "answer", answer: refusal(status, error) };
}
