// Follows a message body to its last byte: by length, by chunks with trailers, or until the connection closes
// (RFC 9112 §6.3, §7.1). It looks at chunk lines and trailers only and never keeps a byte of the body.

import { FramingError } from "../errors.ts";
import { COLON, CR, HTAB, isTokenByte, LF, SP } from "./bytes.ts";

/** Longest chunk line in bytes, its extensions included. */
const maxChunkLineBytes = 4096;
/** Most bytes of trailer fields after the last chunk. */
const maxTrailerBytes = 16 * 1024;
/** More hexadecimal digits than any size that a number holds exactly; leading zeros count. */
const maxSizeDigits = 14;

const done = 0;
const byLength = 1;
const sizeStart = 2;
const size = 3;
const extension = 4;
const sizeLf = 5;
const data = 6;
const dataCr = 7;
const dataLf = 8;
const trailerStart = 9;
const trailerName = 10;
const trailerValue = 11;
const trailerLf = 12;
const lastLf = 13;
const untilClose = 14;

export class BodyTracker {
  #state = done;
  /** Bytes left of the body or chunk; in a chunk line the size read so far. */
  #left = 0;
  /** Bytes of the chunk line, or of the trailers, read so far. */
  #overheadBytes = 0;

  get done(): boolean {
    return this.#state === done;
  }

  /** Whether only the end of the connection ends this body. */
  get untilClose(): boolean {
    return this.#state === untilClose;
  }

  startLength(lengthBytes: number): void {
    this.#left = lengthBytes;
    this.#state = lengthBytes === 0 ? done : byLength;
  }

  startChunked(): void {
    this.#overheadBytes = 0;
    this.#state = sizeStart;
  }

  startUntilClose(): void {
    this.#state = untilClose;
  }

  /** Reads on from `from`; answers the offset after the last byte that belongs to this body. @throws FramingError */
  push(chunk: Uint8Array, from: number): number {
    let i = from;
    while (i < chunk.length && this.#state !== done) {
      if (this.#state === untilClose) return chunk.length;
      if (this.#state === byLength || this.#state === data) {
        const taken = Math.min(this.#left, chunk.length - i);
        this.#left -= taken;
        i += taken;
        if (this.#left === 0) this.#state = this.#state === data ? dataCr : done;
      } else {
        this.#byte(chunk[i] ?? 0);
        i += 1;
      }
    }
    return i;
  }

  #byte(byte: number): void {
    switch (this.#state) {
      case sizeStart:
        this.#left = hexDigit(byte);
        if (this.#left < 0) throw new FramingError("a chunk without a size");
        this.#overheadBytes = 1;
        this.#state = size;
        return;
      case size:
        this.#sizeByte(byte);
        return;
      case extension:
        if (byte === CR) this.#state = sizeLf;
        else {
          checkText(byte, "a control character in a chunk line");
          this.#count(maxChunkLineBytes, "a chunk line");
        }
        return;
      case sizeLf:
        expect(byte, LF, "a chunk line that does not end in CRLF");
        this.#overheadBytes = 0;
        this.#state = this.#left === 0 ? trailerStart : data;
        return;
      case dataCr:
        expect(byte, CR, "a chunk longer than its size");
        this.#state = dataLf;
        return;
      case dataLf:
        expect(byte, LF, "a chunk longer than its size");
        this.#state = sizeStart;
        return;
      default:
        this.#trailerByte(byte);
    }
  }

  #sizeByte(byte: number): void {
    const digit = hexDigit(byte);
    if (digit >= 0) {
      this.#overheadBytes += 1;
      this.#left = this.#left * 16 + digit;
      if (this.#overheadBytes > maxSizeDigits || this.#left > Number.MAX_SAFE_INTEGER) {
        throw new FramingError("a chunk size that is too large");
      }
    } else if (byte === CR) this.#state = sizeLf;
    else if (byte === 0x3b) this.#state = extension;
    else throw new FramingError("a malformed chunk size");
  }

  #trailerByte(byte: number): void {
    this.#count(maxTrailerBytes, "trailers");
    switch (this.#state) {
      case trailerStart:
        if (byte === CR) this.#state = lastLf;
        else if (isTokenByte(byte)) this.#state = trailerName;
        else throw new FramingError("a malformed trailer");
        return;
      case trailerName:
        if (byte === COLON) this.#state = trailerValue;
        else if (!isTokenByte(byte)) throw new FramingError("a malformed trailer");
        return;
      case trailerValue:
        if (byte === CR) this.#state = trailerLf;
        else checkText(byte, "a control character in a trailer");
        return;
      case trailerLf:
        expect(byte, LF, "a trailer that does not end in CRLF");
        this.#state = trailerStart;
        return;
      default:
        expect(byte, LF, "a body that does not end in CRLF");
        this.#state = done;
    }
  }

  #count(limitBytes: number, what: string): void {
    this.#overheadBytes += 1;
    if (this.#overheadBytes > limitBytes) throw new FramingError(`${what} of more than ${limitBytes} bytes`);
  }
}

function expect(byte: number, wanted: number, rule: string): void {
  if (byte !== wanted) throw new FramingError(rule);
}

function checkText(byte: number, rule: string): void {
  if ((byte < SP && byte !== HTAB) || byte === 0x7f) throw new FramingError(rule);
}

/** Value of a hexadecimal digit, or -1. */
function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
