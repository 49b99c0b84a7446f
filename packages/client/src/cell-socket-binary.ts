/** The form in which a `message` event gives binary data. */
export type BinaryType = "arraybuffer" | "nodebuffer" | "uint8array";

/** Binary data in the form asked for; only `nodebuffer` may share memory with what was read. */
export function toBinary(data: Buffer, type: BinaryType): ArrayBuffer | Uint8Array {
  if (type === "nodebuffer") return data;
  return type === "uint8array" ? Uint8Array.from(data) : toArrayBuffer(data);
}

/** A copy, since a small buffer is a slice of a larger one. */
export function toArrayBuffer(data: Buffer): ArrayBuffer {
  const copy = new ArrayBuffer(data.length);
  new Uint8Array(copy).set(data);
  return copy;
}
