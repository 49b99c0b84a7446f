// How a head is changed on its way: a field of ours is put in front of the others, and lines are taken out.

/** A head with one field line inserted before its first field. @param line the whole line, CRLF included */
export function insertField(
  bytes: Uint8Array,
  fieldsStart: number,
  line: Uint8Array,
  into: Uint8Array,
): Uint8Array {
  into.set(bytes.subarray(0, fieldsStart), 0);
  into.set(line, fieldsStart);
  into.set(bytes.subarray(fieldsStart), fieldsStart + line.length);
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
