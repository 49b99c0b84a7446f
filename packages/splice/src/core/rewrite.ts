// The two places where a head is changed on its way: a field of ours is put in front of the others.

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

/** JSON text that may stand in a header field: everything beyond printable ASCII is escaped. */
export function headerJson(value: unknown): string {
  return JSON.stringify(value).replace(/[^\x20-\x7e]/g, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
