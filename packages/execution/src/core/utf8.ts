// Bytes to text without repair: nothing on this wire may be replaced or left out silently.

/**
 * The text of bytes; undefined where they are not UTF-8. A byte-order mark stays, as the first character: no token and no JSON text
 * may begin with one, and a decoder that drops it would accept what a router refuses.
 */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
