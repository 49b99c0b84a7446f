// Finds the end of a message head in a byte stream, whatever way the stream is cut into chunks.
//
// It refuses, at the first such byte, what two parsers might read differently: a line that does not end in exactly
// CRLF, control characters, a folded line. What it hands out is contiguous and has only lines that end in CRLF, so
// that the parsing behind it needs no state. A head that came in one chunk is handed out without a copy.

import { FramingError } from "../errors.ts";
import { CR, HTAB, LF, SP } from "./bytes.ts";

/** Longest head, in bytes, from the first byte of the start line to the empty line. workerd's own bound is the same. */
const maxHeadBytes = 64 * 1024;

const atStart = 0;
const afterLeadingCr = 1;
const inLine = 2;
const afterCr = 3;
const atLineStart = 4;
const afterLastCr = 5;

/** Room for a usual head; doubled when it does not do. */
const firstCapacityBytes = 1024;

export class HeadCollector {
  readonly #maxBlankLineCount: number;
  #state = atStart;
  #blankLineCount = 0;
  /** Bytes of this head read in earlier chunks, dropped empty lines included: what the limit counts. */
  #readBytes = 0;
  #kept: Uint8Array | undefined;
  #keptBytes = 0;
  #head: Uint8Array | undefined;

  /** @param maxBlankLineCount empty lines tolerated (and dropped) before the start line: RFC 9112 §2.2 */
  constructor(maxBlankLineCount: number) {
    this.#maxBlankLineCount = maxBlankLineCount;
  }

  /** Whether a byte of a head was seen whose end was not. */
  get started(): boolean {
    return this.#state !== atStart && this.#state !== afterLeadingCr;
  }

  /**
   * Reads on from `from`. Answers the offset after the head's last byte, or -1 when the chunk ends before the head.
   * @throws FramingError
   */
  push(chunk: Uint8Array, from: number): number {
    const end = Math.min(chunk.length, from + maxHeadBytes - this.#readBytes);
    let state = this.#state;
    let start = from;
    for (let i = from; i < end; i += 1) {
      if (state === inLine) i = skipText(chunk, i, end);
      if (i === end) break;
      const byte = chunk[i] ?? 0;
      if (byte > SP && byte !== 0x7f) {
        if (state === afterCr || state === afterLeadingCr || state === afterLastCr) throw bareCr();
        state = inLine;
      } else if (byte === CR) {
        state = this.#carriageReturn(state);
      } else if (byte === LF) {
        if (state === afterCr) state = atLineStart;
        else if (state === afterLastCr) {
          this.#finish(chunk, start, i + 1);
          return i + 1;
        } else if (state === afterLeadingCr) {
          state = this.#blankLine();
          start = i + 1;
        } else throw new FramingError("a line feed without a carriage return");
      } else {
        checkSpace(byte, state);
      }
    }
    this.#state = state;
    this.#readBytes += end - from;
    if (this.started) this.#keep(chunk, start, end);
    if (this.#readBytes >= maxHeadBytes) throw new FramingError(`a head of more than ${maxHeadBytes} bytes`);
    return -1;
  }

  /** The head that `push` found the end of, its empty line included; the next one may begin. */
  take(): Uint8Array {
    const head = this.#head ?? new Uint8Array();
    this.#head = undefined;
    return head;
  }

  #carriageReturn(state: number): number {
    if (state === inLine) return afterCr;
    if (state === atLineStart) return afterLastCr;
    if (state === atStart) return afterLeadingCr;
    throw bareCr();
  }

  #blankLine(): number {
    this.#blankLineCount += 1;
    if (this.#blankLineCount > this.#maxBlankLineCount)
      throw new FramingError("empty lines before the start line");
    return atStart;
  }

  #finish(chunk: Uint8Array, start: number, end: number): void {
    if (this.#kept === undefined) {
      // Most requests are a chunk that is a head and nothing else.
      this.#head = start === 0 && end === chunk.length ? chunk : chunk.subarray(start, end);
    } else {
      this.#keep(chunk, start, end);
      this.#head = this.#kept.subarray(0, this.#keptBytes);
    }
    this.#kept = undefined;
    this.#keptBytes = 0;
    this.#readBytes = 0;
    this.#blankLineCount = 0;
    this.#state = atStart;
  }

  #keep(chunk: Uint8Array, start: number, end: number): void {
    const needed = this.#keptBytes + end - start;
    if (this.#kept === undefined || this.#kept.length < needed) {
      let capacity = this.#kept?.length ?? firstCapacityBytes;
      while (capacity < needed) capacity *= 2;
      const grown = new Uint8Array(capacity);
      if (this.#kept !== undefined) grown.set(this.#kept.subarray(0, this.#keptBytes));
      this.#kept = grown;
    }
    this.#kept.set(chunk.subarray(start, end), this.#keptBytes);
    this.#keptBytes = needed;
  }
}

/** The offset of the first byte that is not plain text, or `end`: nearly all of a head is passed over here. */
function skipText(chunk: Uint8Array, from: number, end: number): number {
  let i = from;
  while (i < end) {
    const byte = chunk[i] ?? 0;
    if (byte < SP || byte === 0x7f) break;
    i += 1;
  }
  return i;
}

function bareCr(): FramingError {
  return new FramingError("a carriage return without a line feed");
}

/** A tab is fine inside a line; at a line's start it or a space would fold the line; other controls are never fine. */
function checkSpace(byte: number, state: number): void {
  if (byte !== SP && byte !== HTAB) throw new FramingError("a control character in the head");
  if (state === inLine) return;
  if (state === atLineStart) throw new FramingError("a folded line");
  if (state === atStart) throw new FramingError("white space before the start line");
  throw bareCr();
}
