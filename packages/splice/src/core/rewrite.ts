// How a head is changed on its way: a field of ours is put in front of the others, and lines are taken out.

import { asBuffer } from "./bytes.ts";

/** A head with one field line inserted before its first field. @param line the whole line, CRLF included */
export function insertField(
  bytes: Uint8Array,
  fieldsStart: number,
  line: Uint8Array,
  into: Uint8Array,
): Uint8Array {
  const head = asBuffer(bytes);
  head.copy(into, 0, 0, fieldsStart);
  into.set(line, fieldsStart);
  head.copy(into, fieldsStart + line.length, fieldsStart);
  return into;
}

/** A head without some of its lines. @param lines offsets of whole lines, in order */
export function withoutLines(
  bytes: Uint8Array,
  lines: readonly (readonly [from: number, to: number])[],
): Uint8Array {
  const rest = new Uint8Array(lines.reduce((length, [from, to]) => length - (to - from), bytes.length));
  let [read, written] = [0, 0];
  for (const [from, to] of lines) {
    rest.set(bytes.subarray(read, from), written);
    written += from - read;
    read = to;
  }
  rest.set(bytes.subarray(read), written);
  return rest;
}

/** JSON text that may stand in a header field: everything beyond printable ASCII is escaped. */
export function headerJson(value: unknown): string {
  return JSON.stringify(value).replace(/[^\x20-\x7e]/g, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
