import { OptionError } from "../errors.ts";

/** Most bytes that a reason may have: a control frame carries 125, the code takes two (RFC 6455 §5.5). */
export const maxCloseReasonBytes = 123;

/**
 * A WebSocket close frame as a server sends it (unmasked).
 * @param code 1000 to 4999, but none of 1004, 1005, 1006 and 1015, which never stand in a frame (RFC 6455 §7.4)
 * @param reason at most 123 bytes of UTF-8
 * @throws OptionError (CELLKIT_SPLICE_OPTION)
 */
export function closeFrame(code: number, reason: string): Uint8Array {
  if (!isSendable(code)) {
    throw new OptionError("code", `${code} may not stand in a close frame: use 1000 to 4999`);
  }
  const text = new TextEncoder().encode(reason);
  if (text.length > maxCloseReasonBytes) {
    throw new OptionError(
      "reason",
      `has ${text.length} bytes: at most ${maxCloseReasonBytes} fit a close frame`,
    );
  }
  const frame = new Uint8Array(4 + text.length);
  frame.set([0x88, 2 + text.length, code >> 8, code & 0xff]);
  frame.set(text, 4);
  return frame;
}

/** The code that answers a peer's close frame: its own where that may be sent, else 1000 (none given) or 1002. */
export function echoCode(code: number): number {
  if (code === 1005) return 1000;
  return isSendable(code) ? code : 1002;
}

function isSendable(code: number): boolean {
  const isReserved = code === 1004 || code === 1005 || code === 1006 || code === 1015;
  return Number.isInteger(code) && code >= 1000 && code <= 4999 && !isReserved;
}
