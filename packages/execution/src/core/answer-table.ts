// Every refusal that a router, a dispatcher behind it or a TLS edge before it is known to answer (execution API, sections 5.2,
// 6 to 10 and 15; edge, section 5): what it means for whoever sent the request. One row a meaning, so longer than other files.
import type { Next, Repeat, Sent } from "./trouble.ts";

interface Row {
  readonly sent: Sent;
  readonly next: Next;
  readonly repeat: Repeat;
  /** For people: what to do. */
  readonly advice: string;
  /** The texts with this meaning, by status. */
  readonly texts: Readonly<Record<number, readonly string[]>>;
}

const fix = { sent: "no", next: "never", repeat: "not" } as const;
const again = { sent: "no", next: "same-id", repeat: "always" } as const;
const refused = { sent: "yes", next: "never", repeat: "not" } as const;

export const answers = {
  MALFORMED_CALL: {
    ...fix,
    advice: "something between this client and the router changes calls; remove it",
    texts: {
      400: [
        "malformed request line",
        "invalid header",
        "duplicate authorization",
        "duplicate backend pin",
        "duplicate parent identity",
        "unsupported or duplicate preference",
        "invalid content length",
        "transfer encoding unsupported",
        "cancel body must be empty",
        "malformed request",
      ],
      417: ["unsupported expectation"],
      431: ["request head too large"],
    },
  },
  PIN_UNKNOWN: {
    ...fix,
    advice: "name a backend exactly as the router's list has it",
    texts: { 400: ["backend pin is not configured"] },
  },
  PIN_MISPLACED: {
    ...fix,
    advice: "pin submissions and prewarms, and nothing else",
    texts: {
      400: ["backend pin only applies to submission or prewarm", "prewarm requires an explicit backend pin"],
    },
  },
  ID_REFUSED: {
    ...fix,
    advice: "make the id with executionId()",
    texts: {
      400: ["id must be a nonempty ASCII alphanumeric, dash, underscore or dot path component"],
    },
  },
  // A dispatcher says the same of the router's token, and a router passes that on: the id is used up then.
  UNAUTHORIZED: {
    sent: "maybe",
    next: "same-id",
    repeat: "reads",
    advice: "put the router's client token into the token file; it is read again for each call",
    texts: { 401: ["unauthorized"] },
  },
  ROUTE_UNKNOWN: {
    ...fix,
    advice: "check that the URL is a router's, and which routes stand before it",
    texts: { 404: ["not found", "configured protocol route required"] },
  },
  UNKNOWN_EXECUTION: {
    ...again,
    repeat: "not",
    advice: "no router has ever claimed this id: submit it, under the same id",
    texts: { 404: ["unknown execution"] },
  },
  // Only a dispatcher says it, so the router has bound the id.
  NO_AUDIT: {
    sent: "yes",
    next: "same-id",
    repeat: "not",
    advice: "the dispatcher has the run and no audit of it; read its record",
    texts: { 404: ["unknown execution audit"] },
  },
  ID_CONFLICT: {
    ...fix,
    advice:
      "the id is bound to other bytes for ever: find out who sent them; keep the exact bytes of a request",
    texts: { 409: ["execution id already binds different request bytes"] },
  },
  // The router's ledger took the id for new, and the dispatcher did not: one of them was lost, replaced or passed by.
  DISPATCHER_CONFLICT: {
    sent: "yes",
    next: "operator",
    repeat: "not",
    advice:
      "the dispatcher has other bytes under this id, of which the router's ledger did not know; find out who sent them, never use a new id",
    texts: { 409: ["execution id already bound to different request bytes"] },
  },
  PIN_CONFLICT: {
    sent: "maybe",
    next: "never",
    repeat: "not",
    advice: "the id is bound to another backend: read it, or send it without the pin",
    texts: { 409: ["execution already binds a different backend; no reroute"] },
  },
  BODY_SIZE: {
    ...fix,
    advice: "a body has 1 to 65536 bytes",
    texts: {
      413: [
        "request body exceeds 64 KiB or is empty",
        "prewarm body exceeds 64 KiB or is empty",
        "prewarm request exceeds 64 KiB",
        "invalid or oversized parent request",
        "parent request too large",
      ],
    },
  },
  EDGE_REFUSED: {
    ...again,
    advice:
      "the edge before the router had no room for the call, or did not get it in time, and passed nothing on; make the same call again",
    texts: { 408: ["request did not arrive in time"], 503: ["too many connections"] },
  },
  ROUTER_CREDENTIALS: {
    ...again,
    advice: "the router cannot read its tokens, or two of them are equal",
    texts: { 503: ["router credentials unavailable"] },
  },
  OWNERSHIP_UNAVAILABLE: {
    ...again,
    advice: "nothing was sent to a dispatcher; make the same call again",
    texts: { 503: ["ownership unavailable; retry same request without changing id"] },
  },
  LEDGER_FULL: {
    sent: "no",
    next: "operator",
    repeat: "not",
    advice: "submit no new ids until an operator has reconciled the ledger",
    texts: { 503: ["ownership capacity exhausted; operator reconciliation required"] },
  },
  OUTCOME_UNKNOWN: {
    sent: "maybe",
    next: "same-id",
    repeat: "always",
    advice: "send the same bytes under the same id, which then is a read; never a new id",
    texts: { 503: ["submission outcome unknown; owner retained; POST will not be replayed"] },
  },
  OWNERSHIP_UNREADABLE: {
    sent: "maybe",
    next: "same-id",
    repeat: "always",
    advice: "the router cannot read its ledger; make the same call again",
    texts: { 503: ["execution ownership unavailable"] },
  },
  OWNER_REMOVED: {
    sent: "maybe",
    next: "operator",
    repeat: "always",
    advice: "put the owner back into the routers' list; never use a new id",
    texts: { 503: ["recorded owner removed from configured backends; no reroute"] },
  },
  OWNER_LOST: {
    sent: "maybe",
    next: "operator",
    repeat: "always",
    advice: "the owner cannot be reached or has forgotten the run; reconcile it, never use a new id",
    texts: { 503: ["recorded owner unavailable or outcome lost; no reroute or replay"] },
  },
  PROBE_BUSY: {
    ...again,
    advice: "another probe runs, or the router has more than 32 backends",
    texts: { 503: ["capability probe unavailable"] },
  },
  REQUEST_REFUSED: {
    ...refused,
    advice:
      "the dispatcher did not admit it and the id is used up; correct the request and submit it under a new id",
    texts: {
      400: ["invalid execution request"],
      403: ["egress policy refused execution request"],
      413: ["request body exceeds 64 KiB"],
      422: ["request refused"],
    },
  },
  AT_CAPACITY: {
    ...refused,
    advice:
      "the dispatcher did not admit it and the id is used up; submitting it under a new id is your decision",
    texts: { 503: ["node at capacity"] },
  },
  INTERRUPTED: {
    sent: "yes",
    next: "operator",
    repeat: "not",
    advice: "the run was cut by a restart and may still have effects; an operator has to reconcile it",
    texts: {
      503: ["interrupted execution requires operator reconciliation; teardown is unproven; do not replay"],
    },
  },
  JOURNAL_UNAVAILABLE: {
    sent: "maybe",
    next: "operator",
    repeat: "reads",
    advice: "the dispatcher cannot read its journal; ask again, never use a new id",
    texts: { 503: ["execution journal unavailable; do not replay"] },
  },
  NOT_DURABLE: {
    sent: "yes",
    next: "same-id",
    repeat: "always",
    advice: "the run has ended and its record is being written; ask again",
    texts: { 503: ["terminal record not durable; do not replay"] },
  },
  ADMISSION_UNAVAILABLE: {
    sent: "yes",
    next: "same-id",
    repeat: "always",
    advice: "the dispatcher could not write its journal; make the same call again",
    texts: { 503: ["durable admission unavailable; retry same id"] },
  },
  WORKER_UNAVAILABLE: {
    sent: "yes",
    next: "same-id",
    repeat: "always",
    advice: "the dispatcher has recorded a failed run; read it",
    texts: { 503: ["execution worker unavailable"] },
  },
  // Only a dispatcher says it, so the router has bound the id.
  DISPATCHER_CREDENTIALS: {
    sent: "maybe",
    next: "same-id",
    repeat: "always",
    advice: "the dispatcher cannot read its token",
    texts: { 503: ["dispatcher credential unavailable"] },
  },
  PREWARM_UNAVAILABLE: {
    sent: "maybe",
    next: "same-id",
    repeat: "not",
    advice: "the pinned dispatcher gave no answer; a prewarm may be repeated freely",
    texts: { 503: ["pinned prewarm unavailable; no fallback"] },
  },
  PREWARM_BUSY: {
    sent: "yes",
    next: "same-id",
    repeat: "not",
    advice:
      "the pinned dispatcher had no room for it, or runs another; a prewarm uses up no id, so repeat it later",
    texts: {
      503: [
        "prewarm already in progress",
        "prewarm admission refused",
        "verified template no longer observable in serving cache",
      ],
    },
  },
  PREWARM_REFUSED: {
    ...refused,
    advice: "the pinned dispatcher refused it; correct the request, whose id a prewarm does not use up",
    texts: {
      400: ["invalid prewarm request"],
      422: ["prewarm admission refused", "sealed prewarm verification refused"],
    },
  },
  PARENT_REFUSED: {
    ...fix,
    advice: "correct the call to the parent",
    texts: {
      400: [
        "invalid parent route or missing immutable incarnation",
        "invalid parent body length",
        "invalid parent provision plan",
        "invalid parent create",
      ],
      404: ["parent owner unknown"],
      409: ["parent identity already provisioned with another plan; reconcile original owner"],
      503: ["original parent backend removed"],
    },
  },
  PARENT_UNAVAILABLE: {
    ...again,
    advice: "the router cannot forward parents; its operator has to look when it stays so",
    texts: {
      503: [
        "parent routing is not configured",
        "parent credential must be distinct",
        "parent ownership unavailable",
      ],
    },
  },
  PARENT_UNCERTAIN: {
    sent: "maybe",
    next: "operator",
    repeat: "not",
    advice: "keep the incarnation and read it; never use another one",
    texts: {
      409: ["parent identity already claimed; reconcile original owner"],
      502: [
        "parent outcome uncertain; reconcile original owner",
        "parent owner returned another incarnation",
      ],
    },
  },
  SCOPED_REFUSED: {
    ...fix,
    advice: "correct the scoped operation",
    texts: {
      400: [
        "invalid scoped preparation",
        "invalid scoped start",
        "invalid scoped access",
        "scoped request must be bounded unambiguous I-JSON",
      ],
      404: ["scoped receiver disabled", "unknown prepared operation"],
      409: ["operation identity already has different prepared material", "scoped admission refused"],
      413: ["scoped request body exceeds 256 KiB"],
      422: ["scoped preparation refused"],
    },
  },
  SCOPED_UNAVAILABLE: {
    ...again,
    advice: "the router cannot forward scoped operations; its operator has to look when it stays so",
    texts: { 503: ["scoped receiver unavailable", "scoped ownership unavailable"] },
  },
  SCOPED_UNCERTAIN: {
    sent: "maybe",
    next: "same-id",
    repeat: "not",
    advice: "make the same call again",
    texts: { 502: ["scoped outcome uncertain; retry the same request"] },
  },
  GATEWAY: {
    sent: "maybe",
    next: "same-id",
    repeat: "always",
    advice: "something before the router, or the edge, had no answer for it; make the same call again",
    texts: { 502: ["parent owner unavailable; reconcile original identity"] },
  },
  REDIRECTED: {
    sent: "maybe",
    next: "same-id",
    repeat: "not",
    advice: "redirects are not followed, so that the token stays here; give the router's own URL",
    texts: {},
  },
  UNEXPECTED_ANSWER: {
    sent: "maybe",
    next: "operator",
    repeat: "not",
    advice: "no router answers like this; find out what does",
    texts: {},
  },
} as const satisfies Record<string, Row>;

/** The meanings of answers. */
export type AnswerName = keyof typeof answers;
/** The `code` of a {@link CallError} that an answer led to: the README's table has what each means and what may be done. */
export type AnswerCode = `CELLKIT_EXECUTION_${AnswerName}`;
