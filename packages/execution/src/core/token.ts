// The grammar of a token file (execution API, section 3.1), the same for all parts of the plane.
import { decodeUtf8 } from "./utf8.ts";
import { trimWhiteSpace } from "./white-space.ts";

/** The longest file that is accepted, in bytes, white space included. */
export const maxTokenFileBytes = 4096;
const minTokenBytes = 24;

/**
 * The token in a file's bytes, or what is wrong with them, in words that tell nothing of the content. Every character of a token is
 * visible ASCII, so it has as many bytes.
 *
 * @param file the whole file, or its first 4,097 bytes
 */
export function parseToken(file: Uint8Array): { readonly token: string } | { readonly problem: string } {
  if (file.length > maxTokenFileBytes) return { problem: `is longer than ${maxTokenFileBytes} bytes` };
  const text = decodeUtf8(file);
  if (text === undefined) return { problem: "is not UTF-8" };
  const token = trimWhiteSpace(text);
  if (!/^[\x21-\x7e]*$/.test(token)) return { problem: "has a character that is not a visible ASCII one" };
  if (token.length < minTokenBytes) return { problem: `has fewer than ${minTokenBytes} characters` };
  return { token };
}
