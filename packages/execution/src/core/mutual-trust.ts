// Certificates that one side does not take. Files are replaced one after the other, so such a failure may pass in a moment; but what
// is wrong from the start stays wrong, and whoever waits for it should soon be told.
import type { Outcome } from "./course.ts";

/** How long a side that does not take the other's certificate is tried again, while it has answered nothing in this course. */
const graceMs = 5_000;

/** OpenSSL's names for a certificate that is not accepted, as Node gives them (Node.js, TLS, "X509 certificate error codes"). */
const untrusted: ReadonlySet<string> = new Set([
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_DECRYPT_CERT_SIGNATURE",
  "UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "CERT_SIGNATURE_FAILURE",
  "CERT_NOT_YET_VALID",
  "CERT_HAS_EXPIRED",
  "ERROR_IN_CERT_NOT_BEFORE_FIELD",
  "ERROR_IN_CERT_NOT_AFTER_FIELD",
  "CERT_CHAIN_TOO_LONG",
  "CERT_REVOKED",
  "CERT_UNTRUSTED",
  "CERT_REJECTED",
  "INVALID_CA",
  "INVALID_PURPOSE",
  "PATH_LENGTH_EXCEEDED",
  "HOSTNAME_MISMATCH",
  "ERR_TLS_CERT_ALTNAME_INVALID",
]);

/** Whether a connection's failure with this code means that the other side's certificate was not accepted. */
export function isUntrusted(code: string | undefined): code is string {
  return code !== undefined && untrusted.has(code);
}

/** What the tries of one course have met. */
export interface TrustMet {
  /** Whether any try had an answer, so that both sides once took each other. */
  readonly answered: boolean;
  /** When a certificate was first not taken; undefined when the last try did not fail by that. */
  readonly refusedSinceMs: number | undefined;
}

export const nothingMet: TrustMet = { answered: false, refusedSinceMs: undefined };

/** What was met after one more try. */
export function met({ answered, refusedSinceMs }: TrustMet, outcome: Outcome, nowMs: number): TrustMet {
  const trouble = outcome.kind === "trouble" ? outcome.trouble : undefined;
  return {
    answered: answered || trouble === undefined || trouble.status !== undefined,
    refusedSinceMs: trouble?.repeat === "briefly" ? (refusedSinceMs ?? nowMs) : undefined,
  };
}

/** Until when it is tried again, on the caller's clock: where an answer came before, files are being replaced, and time decides. */
export function graceEndMs({ answered, refusedSinceMs }: TrustMet): number {
  return answered || refusedSinceMs === undefined ? Number.POSITIVE_INFINITY : refusedSinceMs + graceMs;
}
