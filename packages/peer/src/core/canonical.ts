// The text that a peer signs (docs/protocol/signed-requests.md, "Signing"): nine fields joined with line feeds.
import { signingDomain } from "./constants.ts";

/** The fields of the signed text after its domain; none holds a line feed. */
export interface SignedFields {
  readonly version: number;
  readonly method: string;
  /** Path and query as on the wire. */
  readonly target: string;
  readonly bodySha256: string;
  readonly source: string;
  readonly destination: string;
  /** Milliseconds since the Unix epoch, in decimal digits. */
  readonly timestamp: string;
  readonly nonce: string;
}

/** The text to sign; encoded as UTF-8 it is what the HMAC covers. */
export function canonicalText(fields: SignedFields): string {
  return `${signingDomain}\n${fields.version}\n${fields.method}\n${fields.target}\n${fields.bodySha256}\n${fields.source}\n${fields.destination}\n${fields.timestamp}\n${fields.nonce}`;
}

const identity = /^[A-Za-z0-9_.-]{1,128}$/;
const nonce = /^[0-9a-f]{32}$/;
const sha256Hex = /^[0-9a-f]{64}$/;

/** Whether a text can name a node or a tool: 1 to 128 of `A–Z a–z 0–9 _ - .`. */
export function isPeerIdentity(text: string): boolean {
  return identity.test(text);
}

/** Whether a text is a nonce: 32 lower-case hex digits. */
export function isPeerNonce(text: string): boolean {
  return nonce.test(text);
}

/** Whether a text is a SHA-256 or HMAC-SHA-256 in lower-case hex digits. */
export function isSha256Hex(text: string): boolean {
  return sha256Hex.test(text);
}

const absoluteForm = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?#]*/;

/**
 * The part of a request target that is signed: path and query as they are, without scheme, authority and fragment. The
 * question mark of an empty query stays.
 */
export function signedTarget(target: string): string {
  const hash = target.indexOf("#");
  const whole = hash < 0 ? target : target.slice(0, hash);
  if (whole.startsWith("/")) return whole;
  const rest = whole.replace(absoluteForm, "");
  if (rest === whole) return whole;
  return rest.startsWith("/") ? rest : `/${rest}`;
}
