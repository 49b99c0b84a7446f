// The value of a Host field: `uri-host [ ":" port ]`, or nothing (RFC 9110 §7.2, RFC 3986 §3.2.2).

import { COLON } from "./bytes.ts";

const openBracket = 0x5b;
const closeBracket = 0x5d;

const unreserved = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** Unreserved characters, sub-delimiters, and the sign that begins a percent-encoded byte. */
const nameTable = tableOf(`${unreserved}!$&'()*+,;=%`);
/** What may stand between the brackets of an IP literal: an IPv6 address, or one of a later version. */
const literalTable = tableOf(`${unreserved}!$&'()*+,;=:`);

/** Whether bytes `from` to `to` are a valid value of a Host field; the empty one is. */
export function isHost(bytes: Uint8Array, from: number, to: number): boolean {
  let i = from;
  if (bytes[i] === openBracket && i < to) {
    i += 1;
    const start = i;
    while (i < to && literalTable[bytes[i] ?? 0] === 1) i += 1;
    if (i === start || i === to || bytes[i] !== closeBracket) return false;
    i += 1;
  } else {
    while (i < to && nameTable[bytes[i] ?? 0] === 1) i += 1;
  }
  if (i < to && bytes[i] !== COLON) return false;
  for (i += 1; i < to; i += 1) {
    const digit = (bytes[i] ?? 0) - 0x30;
    if (digit < 0 || digit > 9) return false;
  }
  return true;
}

function tableOf(chars: string): Uint8Array {
  const table = new Uint8Array(256);
  for (const char of chars) table[char.charCodeAt(0)] = 1;
  return table;
}
