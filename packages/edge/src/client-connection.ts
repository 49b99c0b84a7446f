// One client's connection: requests are served one after another, and nothing that follows a broken or a last one is.
import type { Duplex } from "node:stream";
import { ownAnswer, type Refusal } from "./core/refusal.ts";

/** What a connection has to know of the request that it serves. */
export interface Served {
  /** Its last byte has come. */
  readonly hasArrived: boolean;
  /** It will not: answer with this. */
  breakOff(refusal: Refusal): void;
  /** Answers by itself instead of waiting on. @returns false when an answer has begun already */
  giveUp(): boolean;
}

/** What of the limits counts here. */
export interface ConnectionLimits {
  pipelinedCount: number;
  lingerMs: number;
  halfClosedMs: number;
}

/** One connection and its requests in their order. */
export class ClientConnection {
  /** It was opened past the cap: its first request gets 503. */
  readonly isExcess: boolean;
  readonly #socket: Duplex;
  readonly #limits: ConnectionLimits;
  readonly #waiting: (() => Served)[] = [];
  #current: Served | undefined;
  #isLast = false;
  /** The client sends nothing more. */
  #isHalfClosed = false;

  constructor(socket: Duplex, limits: ConnectionLimits, isExcess: boolean) {
    this.#socket = socket;
    this.#limits = limits;
    this.isExcess = isExcess;
  }

  /** The request that is served is the last one: its answer says `Connection: close`. */
  get isLast(): boolean {
    return this.#isLast || (this.#isHalfClosed && this.#waiting.length === 0);
  }

  /** No request is served, or waits to be. */
  get isIdle(): boolean {
    return this.#current === undefined;
  }

  /** Nothing after the request that is served will be. */
  endAfterCurrent(): void {
    this.#isLast = true;
    this.#waiting.length = 0;
  }

  /** Closes once the request that is served is answered; at once where there is none. */
  end(): void {
    this.endAfterCurrent();
    if (this.isIdle) this.#close();
  }

  /**
   * The client has ended its side. It may be waiting for its answers, or be gone: only bytes sent to it would tell. So what it has asked
   * for is answered, but not waited for without bound.
   */
  halfClosed(): void {
    this.#isHalfClosed = true;
    if (this.isIdle) return;
    const timer = setTimeout(() => {
      this.endAfterCurrent();
      this.#current?.giveUp();
    }, this.#limits.halfClosedMs);
    this.#socket.once("close", () => clearTimeout(timer));
  }

  /** Serves a request once those before it are answered. @param begin starts it; {@link ended} must be called at its end */
  serve(begin: () => Served): void {
    if (this.#isLast) return;
    if (this.#current === undefined) this.#current = begin();
    else if (this.#waiting.length < this.#limits.pipelinedCount) this.#waiting.push(begin);
    else this.endAfterCurrent();
  }

  /** The request that was served is answered, or its client gone. */
  ended(): void {
    this.#current = undefined;
    // What waits on a connection that is gone is not begun.
    if (!this.#socket.writable) this.endAfterCurrent();
    if (this.isLast) this.#close();
    else {
      const next = this.#waiting.shift();
      if (next !== undefined) this.#current = next();
    }
  }

  /**
   * What came cannot be read as a request, or did not come in time. A request that is served and has arrived still gets its
   * answer. @returns whether this refused something that never became a request
   */
  broken(refusal: Refusal): boolean {
    const wasLast = this.#isLast;
    this.endAfterCurrent();
    if (this.#current?.hasArrived === false) this.#current.breakOff(refusal);
    if (wasLast || this.#current !== undefined) return false;
    this.#refuse(refusal);
    return true;
  }

  #refuse(refusal: Refusal): void {
    const { status, contentType, body } = ownAnswer(refusal);
    const head = `HTTP/1.1 ${status} Refused\r\nContent-Type: ${contentType}\r\nContent-Length: ${body.length}`;
    this.#socket.end(`${head}\r\nConnection: close\r\n\r\n${body}`);
    this.#close();
  }

  /** Lets what was written go out, and cuts the connection when the client does not close it. */
  #close(): void {
    const socket = this.#socket;
    if (socket.destroyed) return;
    if (!socket.writableEnded) socket.end();
    const timer = setTimeout(() => socket.destroy(), this.#limits.lingerMs);
    socket.once("close", () => clearTimeout(timer));
  }
}
