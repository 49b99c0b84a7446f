// Where the frames of a WebSocket's server end (RFC 6455 §5.2): all that is needed to know whether a close frame of ours
// may be written in its place. Unlike a full scanner it reads one direction, in which nothing is masked.

const closeOpcode = 0x8;
const maskBit = 0x80;
const lengthOf2Bytes = 126;

/** Close frame 1012 `owner unavailable`, as a server sends it: what a client gets when its owner is gone. */
export const ownerUnavailableFrame: Uint8Array = closeFrame(1012, "owner unavailable");

/** Follows the frames that a server sends. */
export class FrameScanner {
  /** Bytes of the header in hand; a server's has 2 to 10. */
  readonly #header = new Uint8Array(10);
  #headerHave = 0;
  #headerNeed = 2;
  #payloadLeft = 0;
  #isClose = false;
  #closed = false;
  #lost = false;

  /** Whether a frame may be written now: none is half sent, and nothing was seen that no server sends. */
  get atBoundary(): boolean {
    return this.#headerHave === 0 && this.#payloadLeft === 0 && !this.#lost;
  }

  /** Whether a close frame passed whole. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Takes the next bytes, cut anywhere. */
  scan(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length && !this.#lost) {
      if (this.#payloadLeft > 0) {
        const taken = Math.min(this.#payloadLeft, chunk.length - at);
        at += taken;
        this.#payloadLeft -= taken;
        if (this.#payloadLeft === 0 && this.#isClose) this.#closed = true;
      } else {
        this.#header[this.#headerHave] = chunk[at] ?? 0;
        this.#headerHave += 1;
        at += 1;
        if (this.#headerHave === 2) this.#readSecondByte();
        if (this.#headerHave === this.#headerNeed) this.#endHeader();
      }
    }
  }

  #readSecondByte(): void {
    const second = this.#header[1] ?? 0;
    if (second >= maskBit) this.#lost = true;
    else if (second >= lengthOf2Bytes) this.#headerNeed = second === lengthOf2Bytes ? 4 : 10;
  }

  #endHeader(): void {
    this.#isClose = ((this.#header[0] ?? 0) & 0x0f) === closeOpcode;
    const view = new DataView(this.#header.buffer);
    if (this.#headerNeed === 2) this.#payloadLeft = view.getUint8(1);
    else if (this.#headerNeed === 4) this.#payloadLeft = view.getUint16(2);
    else this.#payloadLeft = view.getUint32(2) * 2 ** 32 + view.getUint32(6);
    // Beyond 2^53 the end cannot be counted exactly; nobody will live to see it.
    if (this.#payloadLeft > Number.MAX_SAFE_INTEGER) this.#lost = true;
    this.#headerHave = 0;
    this.#headerNeed = 2;
    if (this.#payloadLeft === 0 && this.#isClose) this.#closed = true;
  }
}

function closeFrame(code: number, reason: string): Uint8Array {
  const text = Buffer.from(reason);
  return Uint8Array.of(0x80 | closeOpcode, 2 + text.length, code >> 8, code & 0xff, ...text);
}
