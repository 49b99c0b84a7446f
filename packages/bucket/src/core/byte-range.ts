/** `Range: bytes=…` of one range. @see RFC 9110 §14.1.2 */

/** The bytes `[start, end)` of an object. */
export interface ByteRange {
  start: number;
  /** Exclusive. */
  end: number;
}

/**
 * Resolves a Range header against a size: the bytes to send; "unsatisfiable" for a 416; undefined when the header must
 * be ignored (another unit, several ranges, malformed), so that the whole object is sent with 200.
 */
export function resolveRange(header: string, sizeBytes: number): ByteRange | "unsatisfiable" | undefined {
  const parts = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header.trim());
  if (parts === null) return undefined;
  const [, first = "", last = ""] = parts;
  if (first === "") {
    if (last === "") return undefined;
    const length = Math.min(Number(last), sizeBytes);
    return length === 0 ? "unsatisfiable" : { start: sizeBytes - length, end: sizeBytes };
  }
  const start = Number(first);
  if (last !== "" && Number(last) < start) return undefined;
  if (start >= sizeBytes) return "unsatisfiable";
  return { start, end: last === "" ? sizeBytes : Math.min(Number(last) + 1, sizeBytes) };
}
