// Where answers begin and end on a connection to the upstream (RFC 9112 §6.3).

import { FramingError } from "../errors.ts";
import { BodyTracker } from "./body-tracker.ts";
import { CR, SP, startsWith } from "./bytes.ts";
import { type Framing, readFraming } from "./fields.ts";
import { HeadCollector } from "./head-collector.ts";

/** The head of an answer. */
export interface ResponseHead extends Framing {
  status: number;
  /** The head as it came, from the status line to the empty line. */
  bytes: Uint8Array;
  /** Offset in `bytes` of the first field line. */
  fieldsStart: number;
}

/**
 * Follows the answer to one request at a time. `expect` names the request's method, `push` stops at the end of each
 * head (interim ones too) and at the end of the answer. After a 101, or a 2xx to CONNECT, the connection is a tunnel
 * and nothing more is tracked.
 */
export class ResponseTracker {
  readonly #collector = new HeadCollector(0);
  readonly #body = new BodyTracker();
  #method = "GET";
  /** The head read last, interim or final; undefined before the first one's last byte. */
  head: ResponseHead | undefined;

  /** `head` until a final head was read, `body`, `complete` after the answer's last byte, `tunnel` after a switch. */
  get state(): "head" | "body" | "complete" | "tunnel" {
    const head = this.head;
    if (head === undefined || isInterim(head.status)) return "head";
    if (isSwitch(head.status, this.#method)) return "tunnel";
    return this.#body.done ? "complete" : "body";
  }

  /** Whether the answer's body ends only with the connection. */
  get untilClose(): boolean {
    return this.#body.untilClose;
  }

  /** Begins to wait for the answer to a request. @param method the request's method, as sent */
  expect(method: string): void {
    this.#method = method;
    this.head = undefined;
    this.#body.startLength(0);
  }

  /**
   * Consumes bytes from `from` on and answers the offset after the last one consumed: the end of the chunk, of a head,
   * or of the answer. A complete answer and a tunnel consume nothing.
   * @throws FramingError (CELLKIT_SPLICE_FRAMING): the upstream is not to be trusted further
   */
  push(chunk: Uint8Array, from: number): number {
    if (this.state === "tunnel") return from;
    if (this.state !== "head") return this.#body.push(chunk, from);
    const end = this.#collector.push(chunk, from);
    if (end < 0) return chunk.length;
    const head = parseResponseHead(this.#collector.take());
    this.head = head;
    if (!isInterim(head.status) && !isSwitch(head.status, this.#method)) this.#startBody(head);
    return end;
  }

  #startBody(head: ResponseHead): void {
    if (this.#method === "HEAD" || head.status === 204 || head.status === 304) this.#body.startLength(0);
    else if (head.chunked) this.#body.startChunked();
    else if (head.contentLength !== undefined) this.#body.startLength(head.contentLength);
    else this.#body.startUntilClose();
  }
}

function isInterim(status: number): boolean {
  return status < 200 && status !== 101;
}

function isSwitch(status: number, method: string): boolean {
  return status === 101 || (method === "CONNECT" && status < 300);
}

function parseResponseHead(bytes: Uint8Array): ResponseHead {
  const minor = startsWith(bytes, 0, "HTTP/1.1 ") ? 1 : 0;
  if (minor === 0 && !startsWith(bytes, 0, "HTTP/1.0 ")) throw badStatusLine();
  const hundreds = (bytes[9] ?? 0) - 0x30;
  const tens = (bytes[10] ?? 0) - 0x30;
  const ones = (bytes[11] ?? 0) - 0x30;
  if (hundreds < 1 || hundreds > 9 || tens < 0 || tens > 9 || ones < 0 || ones > 9) throw badStatusLine();
  const after = bytes[12];
  if (after !== SP && after !== CR) throw badStatusLine();
  let position = 12;
  while (bytes[position] !== CR) position += 1;
  const fieldsStart = position + 2;
  const head: ResponseHead = {
    contentLength: undefined,
    chunked: false,
    close: false,
    webSocket: false,
    expectContinue: false,
    stripped: undefined,
    status: hundreds * 100 + tens * 10 + ones,
    minor,
    bytes,
    fieldsStart,
  };
  readFraming(bytes, fieldsStart, head);
  if (minor === 0 && head.chunked) throw new FramingError("Transfer-Encoding in an HTTP/1.0 answer");
  return head;
}

function badStatusLine(): FramingError {
  return new FramingError("a malformed status line");
}
