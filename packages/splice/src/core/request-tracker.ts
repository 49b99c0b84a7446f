// Where requests begin and end on a client's connection.

import { FramingError } from "../errors.ts";
import { BodyTracker } from "./body-tracker.ts";
import { isTokenByte, latin1, SP, startsWith } from "./bytes.ts";
import { type FieldRules, type Framing, readFraming } from "./fields.ts";
import { HeadCollector } from "./head-collector.ts";

/** The head of a request: what decides its framing, and its bytes as they came. */
export interface RequestHead extends Framing {
  method: string;
  /** Request target as sent, one character a byte. */
  target: string;
  /** The head as it came, from the request line to the empty line. */
  bytes: Uint8Array;
  /** Offset in `bytes` of the first field line. */
  fieldsStart: number;
}

/**
 * Follows requests byte by byte, whatever way they are cut into chunks. Feed it with `push`; each call stops at the end
 * of a head and at the end of a message. `next` begins another message.
 */
export class RequestTracker {
  readonly #collector = new HeadCollector(1);
  readonly #body = new BodyTracker();
  readonly #rules: FieldRules;
  /** The head of the current request, from its last byte on until `next`. */
  head: RequestHead | undefined;

  /** @param rules a request with the reserved field is refused */
  constructor(rules: FieldRules = {}) {
    this.#rules = rules;
  }

  /** `idle` before the first byte, `head`, `body`, and `complete` when the request's last byte was consumed. */
  get state(): "idle" | "head" | "body" | "complete" {
    if (this.head === undefined) return this.#collector.started ? "head" : "idle";
    return this.#body.done ? "complete" : "body";
  }

  /**
   * Consumes bytes from `from` on and answers the offset after the last one consumed: the end of the chunk, of the head
   * (`head` is set then), or of the request (`state` is `complete` then). A complete request consumes nothing.
   * @throws FramingError (CELLKIT_SPLICE_FRAMING): answer 400, close, and do not push again
   */
  push(chunk: Uint8Array, from: number): number {
    if (this.head !== undefined) return this.#body.push(chunk, from);
    const end = this.#collector.push(chunk, from);
    if (end < 0) return chunk.length;
    const head = parseRequestHead(this.#collector.take(), this.#rules);
    if (head.chunked) this.#body.startChunked();
    else this.#body.startLength(head.contentLength ?? 0);
    this.head = head;
    return end;
  }

  /** Begins the next request; only after `state` was `complete`. */
  next(): void {
    this.head = undefined;
  }
}

function parseRequestHead(bytes: Uint8Array, rules: FieldRules): RequestHead {
  let position = 0;
  while (isTokenByte(bytes[position] ?? 0)) position += 1;
  const methodEnd = position;
  if (methodEnd === 0 || bytes[position] !== SP) throw badRequestLine();
  position += 1;
  while ((bytes[position] ?? 0) > SP) position += 1;
  const targetEnd = position;
  if (targetEnd === methodEnd + 1 || bytes[position] !== SP) throw badRequestLine();
  const minor = startsWith(bytes, targetEnd + 1, "HTTP/1.1\r") ? 1 : 0;
  if (minor === 0 && !startsWith(bytes, targetEnd + 1, "HTTP/1.0\r")) throw badRequestLine();
  const fieldsStart = targetEnd + 11;
  const head: RequestHead = {
    contentLength: undefined,
    chunked: false,
    close: false,
    webSocket: false,
    expectContinue: false,
    stripped: undefined,
    method: methodOf(bytes, methodEnd),
    target: latin1(bytes, methodEnd + 1, targetEnd),
    minor,
    bytes,
    fieldsStart,
  };
  readFraming(bytes, fieldsStart, head, rules);
  if (minor === 0 && head.chunked) throw new FramingError("Transfer-Encoding in an HTTP/1.0 request");
  const hasBody = head.chunked || (head.contentLength ?? 0) > 0;
  if (hasBody && head.webSocket) throw new FramingError("a WebSocket handshake with a body");
  if (hasBody && head.method === "CONNECT") throw new FramingError("CONNECT with a body");
  return head;
}

function methodOf(bytes: Uint8Array, end: number): string {
  return end === 3 && startsWith(bytes, 0, "GET") ? "GET" : latin1(bytes, 0, end);
}

function badRequestLine(): FramingError {
  return new FramingError("a malformed request line");
}
