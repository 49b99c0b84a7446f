// WebSocket frame boundaries (RFC 6455 §5.2) in one direction of a connection, without keeping a payload byte.
//
// A close frame may be written between any two frames: control frames may stand between the fragments of a message
// (§5.4), so the scanner need not know messages, only frames.

const closeOpcode = 0x8;

const firstByte = 0;
const secondByte = 1;
const extendedLength = 2;
const maskKey = 3;
const payload = 4;

export class FrameScanner {
  #state = firstByte;
  #isClose = false;
  #isMasked = false;
  /** Bytes left of the header part being read. */
  #partLeft = 0;
  #payloadLeft = 0;
  /** Mask bytes 0 and 1 in the high and low byte: all that a close code needs. */
  #mask = 0;
  #closePayloadRead = 0;
  #codeBytes = 0;
  #lost = false;
  #closeCode: number | undefined;

  /** Whether a frame of ours may be written now: no frame is half sent, and the scanner can still follow. */
  get atBoundary(): boolean {
    return this.#state === firstByte && !this.#lost;
  }

  /** Whether a close frame passed whole. */
  get closed(): boolean {
    return this.#closeCode !== undefined;
  }

  /** Code of that close frame: 1005 when it carried none, undefined before it passed. */
  get closeCode(): number | undefined {
    return this.#closeCode;
  }

  /** Reads on from `from`, at most to the end of one frame; answers the offset after the last byte read. */
  advance(chunk: Uint8Array, from: number): number {
    if (this.#lost) return chunk.length;
    let i = from;
    while (i < chunk.length) {
      if (this.#state === payload) {
        i = this.#payload(chunk, i);
      } else {
        this.#header(chunk[i] ?? 0);
        i += 1;
        if (this.#lost) return chunk.length;
      }
      if (this.#state === firstByte) break;
    }
    return i;
  }

  #header(byte: number): void {
    switch (this.#state) {
      case firstByte:
        this.#isClose = (byte & 0x0f) === closeOpcode;
        this.#closePayloadRead = 0;
        this.#codeBytes = 0;
        this.#mask = 0;
        this.#state = secondByte;
        return;
      case secondByte: {
        this.#isMasked = byte >= 0x80;
        const length = byte & 0x7f;
        if (length < 126) {
          this.#payloadLeft = length;
          this.#afterLength();
        } else {
          this.#payloadLeft = 0;
          this.#partLeft = length === 126 ? 2 : 8;
          this.#state = extendedLength;
        }
        return;
      }
      case extendedLength:
        this.#payloadLeft = this.#payloadLeft * 256 + byte;
        this.#partLeft -= 1;
        // Beyond 2^53 bytes the end of the frame cannot be counted exactly; nobody will live to see it.
        if (this.#payloadLeft > Number.MAX_SAFE_INTEGER) this.#lost = true;
        else if (this.#partLeft === 0) this.#afterLength();
        return;
      default:
        if (this.#partLeft > 2) this.#mask = (this.#mask << 8) | byte;
        this.#partLeft -= 1;
        if (this.#partLeft === 0) this.#startPayload();
    }
  }

  #afterLength(): void {
    if (this.#isMasked) {
      this.#partLeft = 4;
      this.#state = maskKey;
    } else this.#startPayload();
  }

  #startPayload(): void {
    if (this.#payloadLeft === 0) this.#endFrame();
    else this.#state = payload;
  }

  #payload(chunk: Uint8Array, from: number): number {
    const taken = Math.min(this.#payloadLeft, chunk.length - from);
    if (this.#isClose) {
      for (let i = from; i < from + taken && this.#closePayloadRead < 2; i += 1) {
        this.#codeBytes = (this.#codeBytes << 8) | (chunk[i] ?? 0);
        this.#closePayloadRead += 1;
      }
    }
    this.#payloadLeft -= taken;
    if (this.#payloadLeft === 0) this.#endFrame();
    return from + taken;
  }

  #endFrame(): void {
    this.#state = firstByte;
    if (this.#isClose && this.#closeCode === undefined) {
      this.#closeCode = this.#closePayloadRead < 2 ? 1005 : this.#codeBytes ^ this.#mask;
    }
  }
}
