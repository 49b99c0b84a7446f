// The few header fields that decide where a message ends, what becomes of its connection (RFC 9112 §6, §9) and whom a
// request is for (§3.2).

import { FramingError } from "../errors.ts";
import { COLON, COMMA, CR, equalsIgnoringCase, HTAB, isTokenByte, SP } from "./bytes.ts";
import { isHost } from "./host.ts";

/** What a head says about its message's length and its connection. */
export interface Framing {
  /** HTTP minor version: 0 or 1. Known before the fields are read. */
  minor: number;
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
  /** Offsets of the whole lines that are not to be passed on, in order; undefined when there is none. */
  stripped: [from: number, to: number][] | undefined;
}

/** What a request's head may not have, and what of it is not passed on. Names are in lower case. */
export interface FieldRules {
  /** A field that only we may set. Default: none. */
  reservedField?: string;
  /** Beginnings of names of fields that are not passed on; none of `framingFields` may begin so. Default: none. */
  strippedPrefixes?: readonly string[];
}

/** The fields that are read here: to take one out would change where the message ends, or whom it is for. */
export const framingFields: readonly string[] = [
  "content-length",
  "transfer-encoding",
  "connection",
  "upgrade",
  "expect",
  "host",
];

/** More digits than any length that a number holds exactly. */
const maxLengthDigits = 16;

/**
 * Reads the field lines of a head that a HeadCollector handed out.
 * @param from offset of the first field line
 * @param framing takes what they say; has said nothing so far
 * @param rules given for a request. It then needs a valid Host (RFC 9112 §3.2), and an Upgrade that Connection does not
 * name, or that stands in HTTP/1.0, is not passed on (RFC 9110 §7.8).
 * @throws FramingError
 */
export function readFraming(head: Uint8Array, from: number, framing: Framing, rules?: FieldRules): void {
  const { reservedField, strippedPrefixes } = rules ?? {};
  const seen: Seen = { upgrade: false, webSocket: false, upgradeLines: undefined, hosts: 0, badHost: false };
  let position = from;
  while (head[position] !== CR) {
    const nameStart = position;
    while (isTokenByte(head[position] ?? 0)) position += 1;
    const nameEnd = position;
    if (nameEnd === nameStart) throw new FramingError("a field line without a name");
    if (head[position] !== COLON) throw new FramingError("a character that no field name may have");
    position += 1;
    const valueStart = position;
    while (head[position] !== CR) position += 1;
    const valueEnd = position;
    position += 2;
    if (reservedField !== undefined && equalsIgnoringCase(head, nameStart, nameEnd, reservedField)) {
      throw new FramingError("a header field that only this server may set");
    }
    if (strippedPrefixes !== undefined && beginsWithAny(head, nameStart, nameEnd, strippedPrefixes)) {
      framing.stripped ??= [];
      framing.stripped.push([nameStart, position]);
    } else if (mayMatter(nameEnd - nameStart)) {
      const { from, to } = trimmed(head, valueStart, valueEnd);
      readField({ head, nameStart, nameEnd, from, to, lineEnd: position }, framing, seen);
    }
  }
  if (framing.chunked && framing.contentLength !== undefined) {
    throw new FramingError("both Content-Length and Transfer-Encoding");
  }
  const mayUpgrade = seen.upgrade && framing.minor > 0;
  framing.webSocket = mayUpgrade && seen.webSocket;
  if (rules === undefined) return;
  if (seen.hosts > 1) throw new FramingError("more than one Host");
  if (seen.hosts === 0 && framing.minor > 0) throw new FramingError("no Host");
  if (seen.badHost) throw new FramingError("a malformed Host");
  if (seen.upgradeLines !== undefined && !mayUpgrade) {
    framing.stripped = [...(framing.stripped ?? []), ...seen.upgradeLines].sort(([a], [b]) => a - b);
  }
}

/** What of a head's fields is judged once all of them were read. */
interface Seen {
  /** `Connection` names `upgrade`. */
  upgrade: boolean;
  /** `Upgrade` names `websocket`. */
  webSocket: boolean;
  upgradeLines: [from: number, to: number][] | undefined;
  hosts: number;
  badHost: boolean;
}

function beginsWithAny(head: Uint8Array, from: number, to: number, prefixes: readonly string[]): boolean {
  for (const prefix of prefixes) {
    const end = from + prefix.length;
    if (end <= to && equalsIgnoringCase(head, from, end, prefix)) return true;
  }
  return false;
}

interface Field {
  head: Uint8Array;
  nameStart: number;
  nameEnd: number;
  from: number;
  to: number;
  lineEnd: number;
}

/** Whether a name of this length can be one of those read below: most fields need no further look. */
function mayMatter(length: number): boolean {
  return length === 4 || length === 6 || length === 7 || length === 10 || length === 14 || length === 17;
}

function readField(field: Field, framing: Framing, seen: Seen): void {
  const { head, from, to } = field;
  if (isNamed(field, "content-length")) {
    if (framing.contentLength !== undefined) throw new FramingError("more than one Content-Length");
    framing.contentLength = readLength(head, from, to);
  } else if (isNamed(field, "transfer-encoding")) {
    if (framing.chunked) throw new FramingError("more than one Transfer-Encoding");
    framing.chunked = equalsIgnoringCase(head, from, to, "chunked");
    if (!framing.chunked) throw new FramingError("a Transfer-Encoding other than chunked");
  } else if (isNamed(field, "connection")) {
    framing.close ||= listNames(head, from, to, "close");
    seen.upgrade ||= listNames(head, from, to, "upgrade");
  } else if (isNamed(field, "upgrade")) {
    seen.webSocket ||= listNames(head, from, to, "websocket");
    seen.upgradeLines ??= [];
    seen.upgradeLines.push([field.nameStart, field.lineEnd]);
  } else if (isNamed(field, "expect")) {
    framing.expectContinue ||= equalsIgnoringCase(head, from, to, "100-continue");
  } else if (isNamed(field, "host")) {
    seen.hosts += 1;
    seen.badHost ||= !isHost(head, from, to);
  }
}

function isNamed(field: Field, name: string): boolean {
  return equalsIgnoringCase(field.head, field.nameStart, field.nameEnd, name);
}

/** Where a value begins and ends without the blanks around it. */
function trimmed(head: Uint8Array, start: number, end: number): { from: number; to: number } {
  let from = start;
  let to = end;
  while (from < to && isBlank(head[from])) from += 1;
  while (to > from && isBlank(head[to - 1])) to -= 1;
  return { from, to };
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
function listNames(head: Uint8Array, from: number, to: number, wanted: string): boolean {
  let start = from;
  for (let i = from; i <= to; i += 1) {
    if (i < to && head[i] !== COMMA) continue;
    const name = trimmed(head, start, i);
    if (equalsIgnoringCase(head, name.from, name.to, wanted)) return true;
    start = i + 1;
  }
  return false;
}

function isBlank(byte: number | undefined): boolean {
  return byte === SP || byte === HTAB;
}
