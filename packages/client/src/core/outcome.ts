// From what came back (or did not) to the class of an attempt.
import type { AttemptClass } from "./attempt-class.ts";
import { type DrainMarker, headerOf, isJson, isSmall, type ResponseHeaders } from "./drain-marker.ts";

/** A class, and whether the node said that it leaves. */
export interface Outcome {
  readonly class: AttemptClass;
  readonly drains: boolean;
}

/** What decides about a response, beside the response. */
export interface OutcomeRules {
  readonly marker: DrainMarker;
  readonly retryStatuses: ReadonlySet<number>;
}

const answered: Outcome = { class: "answered", drains: false };
const drained: Outcome = { class: "refused", drains: true };

/**
 * Statuses below 500 that another node may answer differently. The rest of 4xx blames the request itself, so a
 * `Cellkit-Outcome: not-run` on it is true and no reason to ask elsewhere.
 */
const notAboutTheRequest: ReadonlySet<number> = new Set([404, 408, 421, 425, 429]);

/** RFC 9209 §2.3 error types under which the next hop never had the request. */
const neverForwarded: ReadonlySet<string> = new Set([
  "dns_timeout",
  "dns_error",
  "destination_not_found",
  "destination_unavailable",
  "destination_ip_prohibited",
  "destination_ip_unroutable",
  "connection_refused",
  "connection_timeout",
  "connection_limit_reached",
  "tls_protocol_error",
  "tls_certificate_error",
  "tls_alert_received",
]);

/** RFC 9209 §2.3 error types under which it may have had it. */
const maybeForwarded: ReadonlySet<string> = new Set([
  "connection_terminated",
  "connection_read_timeout",
  "connection_write_timeout",
  "http_response_incomplete",
  "http_response_timeout",
]);

/** What the server, or a proxy before it, says about whether the request ran. */
export function statedOutcome(headers: ResponseHeaders): "not-run" | "unknown" | undefined {
  const stated = headerOf(headers, "cellkit-outcome").trim();
  if (stated === "not-run" || stated === "unknown") return stated;
  const status = headerOf(headers, "proxy-status");
  if (status === "") return undefined;
  // A list of proxies, nearest to the origin first; each may carry `error=token`. One doubt outweighs all certainty.
  const types = [...status.matchAll(/;\s*error\s*=\s*"?([a-z_]+)/gi)].map(([, type = ""]) =>
    type.toLowerCase(),
  );
  if (types.some((type) => maybeForwarded.has(type))) return "unknown";
  return types.some((type) => neverForwarded.has(type)) ? "not-run" : undefined;
}

/**
 * Weighs response headers. `hold` means: small enough, and only the complete body can tell; then call
 * {@link classifyHeld} with it.
 */
export function classifyHeaders(
  status: number,
  headers: ResponseHeaders,
  hasBody: boolean,
  rules: OutcomeRules,
): Outcome | "hold" {
  if (status < 400) return answered;
  const weight = rules.marker.weigh(status, headers);
  if (weight === "yes") return drained;
  if (status === 503 && hasBody && (weight === "body" || (isSmall(headers) && isJson(headers))))
    return "hold";
  return classifyPlain(status, headers, rules);
}

/** Weighs a held 503 with its complete body. */
export function classifyHeld(
  status: number,
  headers: ResponseHeaders,
  body: string,
  rules: OutcomeRules,
): Outcome {
  if (rules.marker.matches(status, headers, body)) return drained;
  if (isJson(headers) && body.startsWith("Worker refused: ")) return { class: "overloaded", drains: false };
  return classifyPlain(status, headers, rules);
}

function classifyPlain(status: number, headers: ResponseHeaders, rules: OutcomeRules): Outcome {
  const stated = status >= 500 || notAboutTheRequest.has(status) ? statedOutcome(headers) : undefined;
  if (stated === "not-run") return { class: "refused", drains: false };
  if (stated === "unknown") return { class: "ambiguous", drains: false };
  return rules.retryStatuses.has(status) ? { class: "app-status", drains: false } : answered;
}

/** What is known of an attempt that ended without response headers. */
export interface Failure {
  /** Whether the request began to leave this process. */
  readonly started: boolean;
  /** Whether the last byte of the body was handed over. */
  readonly bodySent: boolean;
  /** Declared length of the body; undefined when unknown. */
  readonly bodyBytes: number | undefined;
}

/** Class of an attempt without an answer. @param safeBelowBytes `incompleteUploadSafeBelowBytes`, 0 is off */
export function classifyFailure(failure: Failure, safeBelowBytes: number): AttemptClass {
  if (!failure.started) return "not-sent";
  const incomplete =
    !failure.bodySent && failure.bodyBytes !== undefined && failure.bodyBytes < safeBelowBytes;
  return incomplete ? "not-sent" : "ambiguous";
}

const idempotentMethods: ReadonlySet<string> = new Set([
  "GET",
  "HEAD",
  "OPTIONS",
  "TRACE",
  "PUT",
  "DELETE",
  "QUERY",
]);

/** Whether running it twice does no harm. @param idempotent the caller's word, which outweighs method and key */
export function isRepeatable(method: string, keyed: boolean, idempotent: boolean | undefined): boolean {
  return idempotent ?? (keyed || idempotentMethods.has(method));
}
