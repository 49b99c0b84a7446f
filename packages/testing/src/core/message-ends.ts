// Where a message ends, for proxies that cut between messages.

/**
 * How many of these bytes are the first whole message; undefined while it is not whole. Asked again from the begin of each
 * message on; one function for each direction of each connection.
 */
export type MessageEndFn = (bytes: Buffer) => number | undefined;

/** Whatever came in one piece is a message. */
export const chunks: MessageEndFn = (bytes) => bytes.length;

/** Lines, with their line feed. */
export const lines: MessageEndFn = (bytes) => {
  const feed = bytes.indexOf(10);
  return feed < 0 ? undefined : feed + 1;
};

/**
 * Messages that begin with their length, as many protocols frame them.
 *
 * @param at where the length stands, as 32 bits, the high byte first
 * @param addedBytes what a message has beyond the length that it names
 */
export function lengthPrefixed(at: number, addedBytes: number): MessageEndFn {
  return (bytes) => {
    if (bytes.length < at + 4) return undefined;
    const length = bytes.readUInt32BE(at) + addedBytes;
    return bytes.length < length ? undefined : length;
  };
}

/** HTTP/1.1 requests and answers with a `Content-Length`, in chunks, or without a body. An answer to HEAD looks too long to it. */
export const httpMessages: MessageEndFn = (bytes) => {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd < 0) return undefined;
  const head = bytes.toString("latin1", 0, headEnd + 2);
  const bodyAt = headEnd + 4;
  if (/\r\ntransfer-encoding:[^\r]*chunked[ \t]*\r\n/i.test(head)) return chunkedEnd(bytes, bodyAt);
  const length = Number(/\r\ncontent-length:[ \t]*(\d+)[ \t]*\r\n/i.exec(head)?.[1] ?? 0);
  return bytes.length < bodyAt + length ? undefined : bodyAt + length;
};

function chunkedEnd(bytes: Buffer, from: number): number | undefined {
  let at = from;
  for (;;) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16);
    // No size, or the last chunk: what follows are trailers up to an empty line.
    if (!(size > 0)) {
      const end = bytes.indexOf("\r\n\r\n", lineEnd);
      return end < 0 ? undefined : end + 4;
    }
    at = lineEnd + 2 + size + 2;
  }
}
