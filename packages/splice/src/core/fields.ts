// The few header fields that decide where a message ends and what becomes of its connection (RFC 9112 §6, §9).

import { FramingError } from "../errors.ts";
import { COLON, COMMA, CR, equalsIgnoringCase, HTAB, isTokenByte, SP } from "./bytes.ts";

/** What a head says about its message's length and its connection. */
export interface Framing {
  /** Declared body length in bytes; undefined when none was declared. */
  contentLength: number | undefined;
  /** `Transfer-Encoding: chunked`. */
  chunked: boolean;
  /** `Connection` names `close`. */
  close: boolean;
  /** `Connection` names `upgrade` and `Upgrade` names `websocket`. */
  webSocket: boolean;
  /** `Expect: 100-continue`. */
  expectContinue: boolean;
}

/** More digits than any length that a number holds exactly. */
const maxLengthDigits = 16;

/**
 * Reads the field lines of a head that a HeadCollector handed out.
 * @param from offset of the first field line
 * @param reserved lower-case name of a field that only we may set; undefined for none
 * @throws FramingError
 */
export function readFraming(head: Uint8Array, from: number, reserved: string | undefined): Framing {
  const framing: Framing = {
    contentLength: undefined,
    chunked: false,
    close: false,
    webSocket: false,
    expectContinue: false,
  };
  let connectionUpgrade = false;
  let upgradeWebSocket = false;
  let position = from;
  while (head[position] !== CR) {
    const nameStart = position;
    while (isTokenByte(head[position] ?? 0)) position += 1;
    const nameEnd = position;
    if (nameEnd === nameStart) throw new FramingError("a field line without a name");
    if (head[position] !== COLON) throw new FramingError("a character that no field name may have");
    position += 1;
    while (head[position] === SP || head[position] === HTAB) position += 1;
    const valueStart = position;
    while (head[position] !== CR) position += 1;
    let valueEnd = position;
    while (valueEnd > valueStart && (head[valueEnd - 1] === SP || head[valueEnd - 1] === HTAB)) valueEnd -= 1;
    position += 2;
    const isNamed = (name: string) => equalsIgnoringCase(head, nameStart, nameEnd, name);

    if (isNamed("content-length")) {
      if (framing.contentLength !== undefined) throw new FramingError("more than one Content-Length");
      framing.contentLength = readLength(head, valueStart, valueEnd);
    } else if (isNamed("transfer-encoding")) {
      if (framing.chunked) throw new FramingError("more than one Transfer-Encoding");
      framing.chunked = equalsIgnoringCase(head, valueStart, valueEnd, "chunked");
      if (!framing.chunked) throw new FramingError("a Transfer-Encoding other than chunked");
    } else if (isNamed("connection")) {
      framing.close ||= listNames(head, valueStart, valueEnd, "close");
      connectionUpgrade ||= listNames(head, valueStart, valueEnd, "upgrade");
    } else if (isNamed("upgrade")) {
      upgradeWebSocket ||= listNames(head, valueStart, valueEnd, "websocket");
    } else if (isNamed("expect")) {
      framing.expectContinue ||= equalsIgnoringCase(head, valueStart, valueEnd, "100-continue");
    } else if (reserved !== undefined && isNamed(reserved)) {
      throw new FramingError("a header field that only this server may set");
    }
  }
  if (framing.chunked && framing.contentLength !== undefined) {
    throw new FramingError("both Content-Length and Transfer-Encoding");
  }
  framing.webSocket = connectionUpgrade && upgradeWebSocket;
  return framing;
}

function readLength(head: Uint8Array, from: number, to: number): number {
  if (to === from || to - from > maxLengthDigits) throw new FramingError("a malformed Content-Length");
  let length = 0;
  for (let i = from; i < to; i += 1) {
    const digit = (head[i] ?? 0) - 0x30;
    if (digit < 0 || digit > 9) throw new FramingError("a malformed Content-Length");
    length = length * 10 + digit;
  }
  if (length > Number.MAX_SAFE_INTEGER) throw new FramingError("a malformed Content-Length");
  return length;
}

/** Whether a comma-separated list names the token. */
function listNames(head: Uint8Array, from: number, to: number, name: string): boolean {
  let start = from;
  for (let i = from; i <= to; i += 1) {
    if (i < to && head[i] !== COMMA) continue;
    let first = start;
    let last = i;
    while (first < last && isBlank(head[first])) first += 1;
    while (last > first && isBlank(head[last - 1])) last -= 1;
    if (equalsIgnoringCase(head, first, last, name)) return true;
    start = i + 1;
  }
  return false;
}

function isBlank(byte: number | undefined): boolean {
  return byte === SP || byte === HTAB;
}
