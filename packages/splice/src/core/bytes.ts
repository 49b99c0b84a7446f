// Byte classes and comparisons of RFC 9110 §5.6, on bytes: the trackers never turn a whole head into text.

export const CR = 0x0d;
export const LF = 0x0a;
export const SP = 0x20;
export const HTAB = 0x09;
export const COLON = 0x3a;
export const COMMA = 0x2c;

const tokenChars = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const tokenTable = new Uint8Array(256);
for (const char of tokenChars) tokenTable[char.charCodeAt(0)] = 1;

const lowerTable = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte,
);

/** Whether the byte may stand in a token (method, field name). */
export function isTokenByte(byte: number): boolean {
  return tokenTable[byte] === 1;
}

/** Whether the text is one non-empty token. */
export function isToken(text: string): boolean {
  return /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(text);
}

/** Whether bytes `from` to `to` are the ASCII text, letters compared without case. @param lower text in lower case */
export function equalsIgnoringCase(bytes: Uint8Array, from: number, to: number, lower: string): boolean {
  if (to - from !== lower.length) return false;
  for (let i = 0; i < lower.length; i += 1) {
    if (lowerTable[bytes[from + i] ?? 0] !== lower.charCodeAt(i)) return false;
  }
  return true;
}

/** Bytes `from` to `to`, one character a byte (Latin-1). */
export function latin1(bytes: Uint8Array, from: number, to: number): string {
  return asBuffer(bytes).toString("latin1", from, to);
}

/** The same bytes as a Buffer, whose methods work on parts without an object for each part. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** Whether the bytes from `from` on begin with the ASCII text, case and all. */
export function startsWith(bytes: Uint8Array, from: number, text: string): boolean {
  for (let i = 0; i < text.length; i += 1) {
    if (bytes[from + i] !== text.charCodeAt(i)) return false;
  }
  return true;
}
