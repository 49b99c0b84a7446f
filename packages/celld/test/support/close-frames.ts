/** A close frame, taken apart. */
export interface CloseFrame {
  readonly code: number | undefined;
  readonly reason: string;
}

/** The close frames among the unmasked frames behind an upgrade's answer; `text` has one character a byte. */
export function closeFrames(text: string): CloseFrame[] {
  const frames: CloseFrame[] = [];
  let rest = Buffer.from(text.slice(text.indexOf("\r\n\r\n") + 4), "latin1");
  while (rest.length >= 2) {
    const [first = 0, second = 0] = rest;
    const extended = second === 127 ? 8 : second === 126 ? 2 : 0;
    const length =
      extended === 8 ? Number(rest.readBigUInt64BE(2)) : extended === 2 ? rest.readUInt16BE(2) : second;
    const payload = rest.subarray(2 + extended, 2 + extended + length);
    if (payload.length < length) break;
    if ((first & 0x0f) === 8) {
      const code = length >= 2 ? payload.readUInt16BE(0) : undefined;
      frames.push({ code, reason: payload.subarray(2).toString() });
    }
    rest = rest.subarray(2 + extended + length);
  }
  return frames;
}
