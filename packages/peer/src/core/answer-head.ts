// The head of an answer to an establishment, read from the first bytes of a connection: bounded and strict, since what
// stands behind it is not HTTP any more.
import { TunnelHeadError } from "../errors.ts";
import type { HeaderPairs } from "./signed-head.ts";

/** Longest head of an answer: 101 and refusals of the protocol have under 1 KiB. */
export const maxAnswerHeadBytes = 16_384;

/** Status and headers of an answer. */
export interface AnswerHead {
  readonly status: number;
  readonly headers: HeaderPairs;
}

const headEnd = "\r\n\r\n";
const statusLine = /^HTTP\/1\.1 ([1-5][0-9]{2})(?: [\t\u0020-\u007e\u0080-\u00ff]*)?$/;
const field = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t ]*([\t\u0020-\u007e\u0080-\u00ff]*)$/;

/** Collects the head of one answer. */
export class AnswerHeadReader {
  readonly #held = Buffer.allocUnsafe(maxAnswerHeadBytes);
  #have = 0;

  /**
   * Takes the next bytes; answers the head once it is whole, with the bytes behind it.
   *
   * @throws TunnelHeadError CELLKIT_PEER_TUNNEL_HEAD for a head above 16 KiB, and for what is no HTTP/1.1 answer
   */
  push(chunk: Uint8Array): { readonly head: AnswerHead; readonly rest: Uint8Array } | undefined {
    const before = this.#have;
    this.#have += Math.min(chunk.length, maxAnswerHeadBytes - before);
    this.#held.set(chunk.subarray(0, this.#have - before), before);
    const held = this.#held.subarray(0, this.#have);
    // The end may have begun in the bytes before.
    const end = held.indexOf(headEnd, Math.max(0, before - headEnd.length + 1));
    if (end >= 0) {
      const rest = chunk.subarray(end + headEnd.length - before);
      return { head: parseAnswerHead(held.toString("latin1", 0, end)), rest };
    }
    if (this.#have === maxAnswerHeadBytes) throw new TunnelHeadError(`over ${maxAnswerHeadBytes} bytes`);
    return undefined;
  }
}

/**
 * Reads a head without the empty line behind it.
 *
 * @throws TunnelHeadError CELLKIT_PEER_TUNNEL_HEAD
 */
export function parseAnswerHead(text: string): AnswerHead {
  const [first = "", ...lines] = text.split("\r\n");
  const [, status] = statusLine.exec(first) ?? [];
  if (status === undefined) throw new TunnelHeadError("no HTTP/1.1 status line");
  const headers = lines.map((line) => {
    const [, name, value] = field.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new TunnelHeadError("a malformed header line");
    return [name.toLowerCase(), value.trimEnd()] as const;
  });
  return { status: Number(status), headers };
}
