// The upstream's side of one client connection: the dialled link, and the answer to the request in hand.

import type { Socket } from "node:net";
import { ResponseTracker } from "./core/response-tracker.ts";
import { insertField } from "./core/rewrite.ts";
import { FramingError } from "./errors.ts";
import type { ReadBuffer } from "./read-buffer.ts";
import { UpstreamLink } from "./upstream-link.ts";

/** How an exchange failed; each says what the client can still be told. */
export type Loss =
  /** The dial failed: no byte was delivered, the request did not run. */
  | "undelivered"
  /** Lost after the request was sent, before the answer's head was. */
  | "unanswered"
  /** The same, because the upstream sent something that is no answer. */
  | "malformed"
  /** Lost within an answer whose length the client knows. */
  | "cut"
  /** Lost within an answer that only the connection's end ends: only a reset shows that it is not whole. */
  | "reset";

export interface ExchangeEvents {
  /** Whether the answer should tell the client that its connection will close. */
  isLast(): boolean;
  /** The answer is whole. @param close the connection to the client must not be used again */
  answered(close: boolean): void;
  lost(loss: Loss): void;
  /** The upstream switched to the WebSocket protocol. @param rest bytes after the answer's head */
  switched(link: UpstreamLink, rest: Buffer): void;
  /** The link is gone, and no answer was awaited from it. */
  idleLost(): void;
  /** `write` may be used again after it answered false. */
  drained(): void;
}

export interface ExchangeOptions {
  /** Longest idle time after which a link is used again. */
  reuseMs: number;
  readBuffer: ReadBuffer;
  nowMs: () => number;
}

const closeLine = Buffer.from("connection: close\r\n");

export class Exchange {
  readonly #client: Socket;
  readonly #events: ExchangeEvents;
  readonly #options: ExchangeOptions;
  readonly #response = new ResponseTracker();
  #link: UpstreamLink | undefined;
  #isWebSocket = false;
  /** A request was sent whose answer is not whole. */
  #isOpen = false;
  /** The answer's final head was sent to the client. */
  #headSent = false;
  #closeAnnounced = false;

  /** @param client gets the answers */
  constructor(client: Socket, events: ExchangeEvents, options: ExchangeOptions) {
    this.#client = client;
    this.#events = events;
    this.#options = options;
  }

  /** Whether bytes of the final answer were sent to the client. */
  get headSent(): boolean {
    return this.#headSent;
  }

  /** Makes ready for a request; its bytes follow by `write`. */
  begin(request: { method: string; webSocket: boolean }, path: string): void {
    const { nowMs, reuseMs } = this.#options;
    const link = this.#link;
    const isFresh = link?.path === path && nowMs() - link.idleSinceMs <= reuseMs;
    if (!isFresh) {
      link?.close();
      this.#link = this.#dial(path);
    }
    this.#response.expect(request.method);
    this.#isWebSocket = request.webSocket;
    this.#isOpen = true;
    this.#headSent = false;
    this.#closeAnnounced = false;
  }

  /** Bytes of the request. Answers false when the upstream is slow: wait for `drained`. */
  write(bytes: Uint8Array): boolean {
    return this.#link?.socket.write(bytes) ?? true;
  }

  /** The client can take more. */
  resume(): void {
    this.#link?.socket.resume();
  }

  /** Drops the link; nothing is reported any more. */
  close(): void {
    this.#isOpen = false;
    this.#link?.close();
    this.#link = undefined;
  }

  #dial(path: string): UpstreamLink {
    const link: UpstreamLink = new UpstreamLink(path, this.#options.readBuffer, {
      data: (chunk) => this.#data(link, chunk),
      drained: () => this.#events.drained(),
      gone: (clean) => this.#gone(link, clean),
    });
    return link;
  }

  #data(link: UpstreamLink, chunk: Buffer): void {
    if (!this.#isOpen) {
      // Bytes that belong to no answer: whatever they are, they must not become the next one.
      this.#drop();
      this.#events.idleLost();
      return;
    }
    const response = this.#response;
    let offset = 0;
    let unsentFrom = 0;
    while (offset < chunk.length && !isOver(response.state)) {
      const from = offset;
      const headBefore = response.head;
      try {
        offset = response.push(chunk, offset);
      } catch (error) {
        if (!(error instanceof FramingError)) throw error;
        this.#fail(this.#headSent ? this.#cutOrReset() : "malformed");
        return;
      }
      const head = response.head;
      if (response.state === "head" && head === headBefore) unsentFrom = offset;
      else if (head !== undefined && head !== headBefore) {
        if (head.status === 101 && !this.#isWebSocket) {
          this.#fail("malformed");
          return;
        }
        const isFinal = response.state !== "head";
        const announce = isFinal && head.status !== 101 && !head.close && this.#events.isLast();
        const cameWhole = head.bytes.length === offset - from;
        if (announce) link.sendOn(this.#client, withClose(head.bytes, head.fieldsStart));
        else if (!cameWhole) link.sendOn(this.#client, head.bytes);
        if (announce || !cameWhole) unsentFrom = offset;
        if (isFinal) this.#headSent = true;
        this.#closeAnnounced ||= announce;
      }
    }
    if (offset > unsentFrom) link.sendOn(this.#client, part(chunk, unsentFrom, offset));
    this.#afterChunk(link, chunk, offset);
  }

  #afterChunk(link: UpstreamLink, chunk: Buffer, offset: number): void {
    const { state } = this.#response;
    if (state === "tunnel") {
      this.#isOpen = false;
      this.#link = undefined;
      this.#events.switched(link, chunk.subarray(offset));
    } else if (state === "complete") {
      if (offset < chunk.length || this.#response.head?.close) this.#drop();
      this.#answered();
    }
  }

  #answered(): void {
    const head = this.#response.head;
    this.#isOpen = false;
    if (this.#link !== undefined) this.#link.idleSinceMs = this.#options.nowMs();
    const isLast = head === undefined || head.close || head.minor === 0 || this.#response.untilClose;
    this.#events.answered(isLast || this.#closeAnnounced);
  }

  #gone(link: UpstreamLink, clean: boolean): void {
    this.#link = undefined;
    if (!this.#isOpen) this.#events.idleLost();
    else if (!link.connected) this.#fail("undelivered");
    else if (!this.#headSent) this.#fail("unanswered");
    else if (clean && this.#response.untilClose) this.#answered();
    else this.#fail(this.#cutOrReset());
  }

  #cutOrReset(): Loss {
    return this.#response.untilClose ? "reset" : "cut";
  }

  #fail(loss: Loss): void {
    this.close();
    this.#events.lost(loss);
  }

  #drop(): void {
    this.#link?.close();
    this.#link = undefined;
  }
}

function isOver(state: ResponseTracker["state"]): boolean {
  return state === "complete" || state === "tunnel";
}

function part(chunk: Buffer, from: number, to: number): Buffer {
  return from === 0 && to === chunk.length ? chunk : chunk.subarray(from, to);
}

function withClose(bytes: Uint8Array, fieldsStart: number): Uint8Array {
  return insertField(bytes, fieldsStart, closeLine, Buffer.allocUnsafe(bytes.length + closeLine.length));
}
