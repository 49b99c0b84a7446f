// What a receiver reads from the head of a signed request.
import { peerHeader } from "./constants.ts";

/** Name and value pairs as received, so that a header given twice is seen. Names in any case. */
export type HeaderPairs = readonly (readonly [string, string])[];

/** The seven values; one that is absent, or given twice, is undefined. */
export type SignedHead = { -readonly [name in keyof typeof peerHeader]: string | undefined };

const fieldOf: ReadonlyMap<string, keyof SignedHead> = new Map(
  Object.entries(peerHeader).map(([field, name]) => [name, field as keyof SignedHead]),
);

/** Reads the seven headers. A header that is given twice counts as absent: nobody may choose which one is meant. */
export function readSignedHead(headers: HeaderPairs): SignedHead {
  const head: SignedHead = {
    version: undefined,
    source: undefined,
    destination: undefined,
    timestamp: undefined,
    nonce: undefined,
    bodySha256: undefined,
    signature: undefined,
  };
  let twice: Set<keyof SignedHead> | undefined;
  for (const [name, value] of headers) {
    const field = fieldOf.get(name) ?? fieldOf.get(name.toLowerCase());
    if (field === undefined) continue;
    if (head[field] === undefined) head[field] = value;
    else {
      twice ??= new Set();
      twice.add(field);
    }
  }
  for (const field of twice ?? []) head[field] = undefined;
  return head;
}

const decimal = /^(?:0|[1-9][0-9]{0,19})$/;

/**
 * Milliseconds of a timestamp, undefined when it is not an unsigned 64-bit integer without sign and leading zeros.
 * Beyond 2^53 the answer is not exact, but then it is outside of every clock window.
 */
export function parseTimestamp(text: string | undefined): number | undefined {
  return text !== undefined && decimal.test(text) ? Number(text) : undefined;
}

const visible = /^[\t\u0020-\u007e]*$/;

/** Whether a header value is visible ASCII (with spaces and tabs, as HTTP libraries count them). */
export function isVisibleAscii(text: string): boolean {
  return visible.test(text);
}
