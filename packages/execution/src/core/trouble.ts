// What went wrong with one call, as a value: the courses decide with it, and CallError is made from it at the end.
import type { AnswerCode } from "./answer-table.ts";

/** Whether a dispatcher may have got a request. */
export type Sent = "no" | "maybe" | "yes";

/** What may be done after a failure. */
export type Next = "same-id" | "never" | "operator";

/**
 * Which calls the client makes again by itself until a deadline: submissions and reads, both for a short while (mutual-trust.ts),
 * reads only, or none.
 */
export type Repeat = "always" | "briefly" | "reads" | "not";

/** What a call is made for. The first three are parts of a course, a prewarm is a call by itself. */
export type Purpose = "submit" | "result" | "cancel" | "prewarm";

/** Failures without an answer that could be read. */
export type LocalCode =
  | "CELLKIT_EXECUTION_TOKEN_FILE"
  | "CELLKIT_EXECUTION_CA_FILE"
  | "CELLKIT_EXECUTION_CLIENT_CERTIFICATE"
  | "CELLKIT_EXECUTION_CLIENT_REFUSED"
  | "CELLKIT_EXECUTION_ROUTER_UNTRUSTED"
  | "CELLKIT_EXECUTION_UNREACHABLE"
  | "CELLKIT_EXECUTION_ANSWER_LOST"
  | "CELLKIT_EXECUTION_ANSWER_UNUSABLE";

/** Every `code` of a CallError. */
export type CallErrorCode = AnswerCode | LocalCode;

export interface Trouble {
  readonly code: CallErrorCode;
  readonly sent: Sent;
  readonly next: Next;
  readonly repeat: Repeat;
  /** What happened, for the message. */
  readonly what: string;
  /** What to do, for the message. */
  readonly advice: string;
  /** Whether the answer was in words that a router, dispatcher or edge is known to use, and not in others' or none. */
  readonly wordsKnown?: boolean;
  readonly status?: number | undefined;
  readonly routerText?: string | undefined;
  readonly reason?: string | undefined;
  readonly detail?: string | undefined;
  readonly problems?: readonly { readonly code: string; readonly field: string }[] | undefined;
  readonly cause?: unknown;
}

/** The token file cannot be used: nothing was sent. */
export function tokenFileTrouble(path: string, problem: string, cause?: unknown): Trouble {
  return fileTrouble(
    "CELLKIT_EXECUTION_TOKEN_FILE",
    `the token file ${path} ${problem}`,
    "write one token of 24 to 4096 visible ASCII characters into it",
    cause,
  );
}

/** The CA file cannot be used: nothing was sent. */
export function caFileTrouble(path: string, problem: string, cause?: unknown): Trouble {
  return fileTrouble(
    "CELLKIT_EXECUTION_CA_FILE",
    `the CA file ${path} ${problem}`,
    "write the complete bundle of PEM certificates into it",
    cause,
  );
}

/** The client certificate or its key cannot be used: nothing was sent. */
export function clientCertificateTrouble(path: string, problem: string, cause?: unknown): Trouble {
  return fileTrouble(
    "CELLKIT_EXECUTION_CLIENT_CERTIFICATE",
    `the client certificate's file ${path} ${problem}`,
    "write the certificate and its own key, PEM, into the two files",
    cause,
  );
}

/** Of a file that is read for each call. It may be mended meanwhile, so reads look again. */
function fileTrouble(code: LocalCode, what: string, advice: string, cause: unknown): Trouble {
  return { code, sent: "no", next: "same-id", repeat: "reads", what, advice, cause };
}

/** An edge wants a client certificate, or another one: nothing was sent. It is tried again for a while, as both sides read their files again. */
export function clientRefusedTrouble(
  origin: string,
  certFile: string | undefined,
  reason: string,
  cause?: unknown,
): Trouble {
  return {
    code: "CELLKIT_EXECUTION_CLIENT_REFUSED",
    sent: "no",
    next: "same-id",
    repeat: "briefly",
    what:
      certFile === undefined
        ? `${origin} serves only clients with a certificate, and this one has none (${reason})`
        : `${origin} did not take the client certificate in ${certFile} (${reason})`,
    advice:
      certFile === undefined
        ? "give clientCertFile and clientKeyFile"
        : "check its dates, and that its CA is one that the edge was given for its clients",
    cause,
  };
}

/** The certificate of the other side was not accepted: nothing was sent. */
export function untrustedTrouble(
  origin: string,
  caFile: string | undefined,
  reason: string,
  cause?: unknown,
): Trouble {
  return {
    code: "CELLKIT_EXECUTION_ROUTER_UNTRUSTED",
    sent: "no",
    next: "same-id",
    repeat: "briefly",
    what: `the certificate of ${origin} is not accepted (${reason})`,
    advice: adviceOnTrust(caFile, reason),
    cause,
  };
}

function adviceOnTrust(caFile: string | undefined, reason: string): string {
  if (/ALTNAME|HOSTNAME/.test(reason))
    return "it was issued for other names: give a URL with one of them, or let it be issued for this one";
  if (/EXPIRED|NOT_YET_VALID/.test(reason)) return "let it be renewed, or set the clock of this machine";
  return caFile === undefined
    ? "give the certificates of the CA that it comes from in caFile, and let the router send the whole chain"
    : `write the certificates of the CA that it comes from into ${caFile}, and let the router send the whole chain`;
}

/** No connection came about: nothing was sent. */
export function unreachableTrouble(origin: string, reason: string, cause?: unknown): Trouble {
  return {
    code: "CELLKIT_EXECUTION_UNREACHABLE",
    sent: "no",
    next: "same-id",
    repeat: "always",
    what: `no connection to ${origin} (${reason})`,
    advice: "check its address, port and scheme, and that it runs",
    cause,
  };
}

/** The connection stood, but no whole answer came. */
export function lostTrouble(origin: string, reason: string, cause?: unknown): Trouble {
  return {
    code: "CELLKIT_EXECUTION_ANSWER_LOST",
    sent: "maybe",
    next: "same-id",
    repeat: "always",
    what: `the answer of ${origin} was lost (${reason})`,
    advice: "make the same call again: a router never runs an id twice",
    cause,
  };
}

/** An answer came that says success and cannot be read. */
export function unusableTrouble(status: number, problem: string, cause?: unknown): Trouble {
  return {
    code: "CELLKIT_EXECUTION_ANSWER_UNUSABLE",
    sent: "maybe",
    next: "same-id",
    repeat: "always",
    what: `the answer (${status}) ${problem}`,
    advice: "check that the URL is a router's; the same call may be made again",
    status,
    cause,
  };
}

/** Of two pieces of knowledge about the same request, the one that has to be assumed. */
export function worseSent(a: Sent, b: Sent): Sent {
  if (a === "yes" || b === "yes") return "yes";
  return a === "maybe" || b === "maybe" ? "maybe" : "no";
}
