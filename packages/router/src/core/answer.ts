// What the router itself answers. Clients know the texts, so they never change (execution API, section 15).

/** An answer of the router's own. */
export interface OwnAnswer {
  readonly status: number;
  /** JSON text, ASCII unless it carries a report. */
  readonly body: string;
}

/** Every refusal of the router, by a name for programs. */
export const refusals = {
  "malformed-line": [400, "malformed request line"],
  "invalid-header": [400, "invalid header"],
  "duplicate-authorization": [400, "duplicate authorization"],
  "duplicate-pin": [400, "duplicate backend pin"],
  "duplicate-parent": [400, "duplicate parent identity"],
  "invalid-preference": [400, "unsupported or duplicate preference"],
  "invalid-length": [400, "invalid content length"],
  "transfer-encoding": [400, "transfer encoding unsupported"],
  "unknown-pin": [400, "backend pin is not configured"],
  "misplaced-pin": [400, "backend pin only applies to submission or prewarm"],
  "invalid-id": [400, "id must be a nonempty ASCII alphanumeric, dash, underscore or dot path component"],
  "cancel-body": [400, "cancel body must be empty"],
  "pin-required": [400, "prewarm requires an explicit backend pin"],
  unauthorized: [401, "unauthorized"],
  "not-found": [404, "not found"],
  "unknown-execution": [404, "unknown execution"],
  "scoped-disabled": [404, "scoped receiver disabled"],
  conflict: [409, "execution id already binds different request bytes"],
  "other-backend": [409, "execution already binds a different backend; no reroute"],
  "body-size": [413, "request body exceeds 64 KiB or is empty"],
  "prewarm-size": [413, "prewarm body exceeds 64 KiB or is empty"],
  credentials: [503, "router credentials unavailable"],
  "no-ownership": [503, "ownership unavailable; retry same request without changing id"],
  full: [503, "ownership capacity exhausted; operator reconciliation required"],
  uncertain: [503, "submission outcome unknown; owner retained; POST will not be replayed"],
  "ownership-unreadable": [503, "execution ownership unavailable"],
  "owner-removed": [503, "recorded owner removed from configured backends; no reroute"],
  "owner-lost": [503, "recorded owner unavailable or outcome lost; no reroute or replay"],
  "prewarm-failed": [503, "pinned prewarm unavailable; no fallback"],
  "no-capabilities": [503, "capability probe unavailable"],
  "no-parents": [503, "parent routing is not configured"],
} as const satisfies Readonly<Record<string, readonly [status: number, text: string]>>;

/** Why the router answers by itself. */
export type Refusal = keyof typeof refusals;

/** The answer for a refusal: `{"error": text}`. */
export function refusalAnswer(refusal: Refusal): OwnAnswer {
  const [status, text] = refusals[refusal];
  return { status, body: JSON.stringify({ error: text }) };
}

/** An own answer as it goes over the wire. Every reason phrase is `OK`, as the original's. */
export function encodeAnswer({ status, body }: OwnAnswer): Uint8Array {
  const bytes = Buffer.byteLength(body);
  return Buffer.from(
    `HTTP/1.1 ${status} OK\r\nContent-Type: application/json\r\nContent-Length: ${bytes}\r\nConnection: close\r\n\r\n${body}`,
  );
}
