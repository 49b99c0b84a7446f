// The grammar of a token file (execution API, section 3.1), the same for all parts of the plane.
import { trimWhiteSpace } from "./white-space.ts";

/** The longest file that is accepted, in bytes, white space included. */
export const maxTokenFileBytes = 4096;
const minTokenBytes = 24;

/** The token in a file's bytes, or what is wrong with them, in words that tell nothing of the content. */
export function parseToken(file: Uint8Array): { readonly token: string } | { readonly problem: string } {
  if (file.length > maxTokenFileBytes) return { problem: `is longer than ${maxTokenFileBytes} bytes` };
  let text: string;
  try {
    // A byte-order mark stays: it is no part of a token, and a router refuses it.
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(file);
  } catch {
    return { problem: "is not UTF-8" };
  }
  const token = trimWhiteSpace(text);
  if (!/^[\x21-\x7e]*$/.test(token)) return { problem: "has a character that is not a visible ASCII one" };
  if (token.length < minTokenBytes) return { problem: `has fewer than ${minTokenBytes} characters` };
  return { token };
}
