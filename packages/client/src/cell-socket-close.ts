// What a caller may close with. These are the checks, and the errors, of the WebSocket standard (WHATWG, close()).

/** RFC 6455 §5.5: a control frame has at most 125 bytes, two of which are the code. */
const MAX_REASON_BYTES = 123;

/** @throws DOMException `InvalidAccessError` unless the code is 1000 or in 3000 to 4999 */
export function checkedCloseCode(code: number): number {
  if (code === 1000 || (code >= 3000 && code <= 4999)) return code;
  throw new DOMException(`close code ${code} is not 1000 and not in 3000 to 4999`, "InvalidAccessError");
}

/** @throws DOMException `SyntaxError` above 123 UTF-8 bytes */
export function checkedReason(reason: string): string {
  const sizeBytes = Buffer.byteLength(reason);
  if (sizeBytes <= MAX_REASON_BYTES) return reason;
  throw new DOMException(
    `a close reason has at most ${MAX_REASON_BYTES} UTF-8 bytes, not ${sizeBytes}`,
    "SyntaxError",
  );
}

/** For whoever uses a socket after its end. */
export function closedError(): DOMException {
  return new DOMException("the socket is closed, or closing", "InvalidStateError");
}
