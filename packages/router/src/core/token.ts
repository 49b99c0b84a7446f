// The grammar of a token file (execution API, section 3.1), and comparisons that do not tell where two tokens differ.
import { timingSafeEqual } from "node:crypto";
import { trim } from "./white-space.ts";

/** The longest file that is taken, in bytes, white space included. */
export const maxTokenFileBytes = 4096;
/** The shortest token, in bytes. */
const minTokenBytes = 24;

/**
 * The token in the bytes of a file, or what is wrong with them, in words that tell nothing of the content.
 * @param file the whole file, or its first 4,097 bytes
 */
export function parseToken(file: Uint8Array): { readonly token: Buffer } | { readonly problem: string } {
  if (file.length > maxTokenFileBytes) return { problem: `is longer than ${maxTokenFileBytes} bytes` };
  let text: string;
  try {
    // A byte-order mark stays, and makes the token invalid.
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(file);
  } catch {
    return { problem: "is not UTF-8" };
  }
  const token = trim(text);
  if (!/^[\x21-\x7e]*$/.test(token)) return { problem: "has a character that is not a visible ASCII one" };
  if (token.length < minTokenBytes) return { problem: `has fewer than ${minTokenBytes} characters` };
  return { token: Buffer.from(token, "latin1") };
}

/** Whether two tokens are equal. Only their lengths can be learnt from the time it takes. */
export function isSameToken(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

/** Whether a token is among others. Each is compared, also after a match. */
export function isAmong(token: Uint8Array, others: readonly Uint8Array[]): boolean {
  let found = false;
  for (const other of others) found = isSameToken(token, other) || found;
  return found;
}
