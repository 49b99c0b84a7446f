// What the edge answers by itself: statuses and texts. A client knows these texts, so they do not change.

/** Why a request is not answered by the backend. */
export type Refusal =
  | "malformed"
  | "no-route"
  | "timeout"
  | "declared-too-large"
  | "body-too-large"
  | "expectation"
  | "head-too-large"
  | "unavailable"
  | "too-many-connections";

/** Status and text of each. All but `unavailable` say for certain that the backend was not asked. */
export const refusals: Readonly<Record<Refusal, { readonly status: number; readonly text: string }>> = {
  malformed: { status: 400, text: "malformed request" },
  "no-route": { status: 404, text: "configured protocol route required" },
  timeout: { status: 408, text: "request did not arrive in time" },
  "declared-too-large": { status: 413, text: "parent request too large" },
  "body-too-large": { status: 413, text: "invalid or oversized parent request" },
  expectation: { status: 417, text: "unsupported expectation" },
  "head-too-large": { status: 431, text: "request head too large" },
  unavailable: { status: 502, text: "parent owner unavailable; reconcile original identity" },
  "too-many-connections": { status: 503, text: "too many connections" },
};

/** An answer of the edge itself. */
export interface OwnAnswer {
  readonly status: number;
  readonly contentType: string;
  /** ASCII, ends with a newline. */
  readonly body: string;
}

/**
 * The answer for a refusal: plain text, or `{"error": text}` for a client that asks for JSON.
 * @param accept the request's `Accept`, undefined where there is none
 */
export function ownAnswer(refusal: Refusal, accept?: string): OwnAnswer {
  const { status, text } = refusals[refusal];
  return asksForJson(accept)
    ? { status, contentType: "application/json", body: `${JSON.stringify({ error: text })}\n` }
    : { status, contentType: "text/plain; charset=utf-8", body: `${text}\n` };
}

/** Whether `application/json` is named, and not with weight 0. A wildcard does not ask for JSON (RFC 9110 section 12.5.1). */
function asksForJson(accept = ""): boolean {
  return accept.split(",").some((range) => {
    const [type = "", ...parameters] = range.toLowerCase().split(";");
    const isRefused = parameters.some((parameter) => /^\s*q\s*=\s*0(\.0*)?\s*$/.test(parameter));
    return type.trim() === "application/json" && !isRefused;
  });
}
