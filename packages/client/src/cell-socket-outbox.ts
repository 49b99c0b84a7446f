// What goes out: straight to the connection while it keeps up, else through the queue.
import { publish } from "./cell-socket-channels.ts";
import type { Connection } from "./cell-socket-connection.ts";
import type { ResolvedSocketOptions } from "./cell-socket-defaults.ts";
import type { SendData } from "./cell-socket-options.ts";
import { Waiters } from "./cell-socket-waiters.ts";
import { type Queued, SendQueue } from "./core/socket-queue.ts";
import { MessageTooLargeError, SendBufferFullError } from "./errors.ts";

/** The sending half of one socket. */
export class Outbox {
  readonly #options: ResolvedSocketOptions;
  readonly #now: () => number;
  readonly #queue: SendQueue<SendData>;
  readonly #ready = new Waiters();
  #connection: Connection | undefined;
  #expiry: NodeJS.Timeout | undefined;

  constructor(options: ResolvedSocketOptions, now: () => number) {
    this.#options = options;
    this.#now = now;
    this.#queue = new SendQueue(options.queue);
  }

  /** Bytes that have not left this process: the queue's and the connection's. */
  get bufferedAmount(): number {
    return this.#queue.sizeBytes + (this.#connection?.bufferedAmount ?? 0);
  }

  /**
   * Sends now or queues.
   *
   * @throws MessageTooLargeError (`CELLKIT_CLIENT_WS_TOO_LARGE`), SendBufferFullError (`CELLKIT_CLIENT_WS_BUFFER`)
   */
  send(data: SendData, mayQueue: boolean): "sent" | "queued" {
    const sizeBytes = checkedSize(data, this.#options.maxSendBytes);
    const connection = this.#connection;
    if (connection?.writable === true && this.#queue.length === 0 && this.#hasRoom(connection)) {
      connection.send(data);
      return "sent";
    }
    if (!mayQueue) throw new SendBufferFullError(this.#queue.length, this.bufferedAmount);
    this.#expire();
    // The caller may reuse its buffer before the message goes out.
    const pushed = this.#queue.push(keep(data), sizeBytes, this.#now());
    if (pushed.kind === "full") throw new SendBufferFullError(this.#queue.length, this.#queue.sizeBytes);
    discard(pushed.dropped, "overflow");
    this.#armExpiry();
    return "queued";
  }

  /** Resolves once fewer than `lowWaterMarkBytes` have still to leave. */
  ready(signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted !== true && this.bufferedAmount < this.#options.lowWaterMarkBytes)
      return Promise.resolve();
    return this.#ready.wait(signal);
  }

  /** A connection is open: what waits goes out. */
  open(connection: Connection): void {
    this.#connection = connection;
    this.flush();
  }

  /** There is no connection to send on any more. */
  disconnect(): void {
    this.#connection = undefined;
    this.#wake();
  }

  /** Sends what waits, as far as the connection keeps up. */
  flush(): void {
    this.#expire();
    const connection = this.#connection;
    while (connection?.writable === true && this.#hasRoom(connection)) {
      const message = this.#queue.shift();
      if (message === undefined) break;
      connection.send(message.data);
    }
    this.#armExpiry();
    this.#wake();
  }

  /** Before a close that was asked for: hands everything to the connection, which sends it ahead of the goodbye. */
  flushAll(): void {
    const connection = this.#connection;
    if (connection?.writable !== true) return;
    for (const message of this.#queue.clear()) connection.send(message.data);
  }

  /** The end: nothing will be sent any more. */
  end(reason: unknown): void {
    clearTimeout(this.#expiry);
    this.#connection = undefined;
    discard(this.#queue.clear(), "closed");
    this.#ready.rejectAll(reason);
  }

  #hasRoom(connection: Connection): boolean {
    return connection.bufferedAmount < this.#options.highWaterMarkBytes;
  }

  #wake(): void {
    if (this.#ready.size > 0 && this.bufferedAmount < this.#options.lowWaterMarkBytes)
      this.#ready.resolveAll();
  }

  #expire(): void {
    discard(this.#queue.expire(this.#now()), "expired");
  }

  #armExpiry(): void {
    const dueMs = this.#queue.expiresAtMs;
    if (dueMs === undefined || this.#expiry !== undefined) return;
    this.#expiry = setTimeout(
      () => {
        this.#expiry = undefined;
        this.#expire();
        this.#wake();
        this.#armExpiry();
      },
      Math.max(1, Math.ceil(dueMs - this.#now())),
    );
    this.#expiry.unref();
  }
}

/**
 * The size of a message on the wire: UTF-8 for text.
 *
 * @throws MessageTooLargeError (`CELLKIT_CLIENT_WS_TOO_LARGE`)
 */
export function checkedSize(data: SendData, maxSendBytes: number): number {
  const sizeBytes = sizeOf(data);
  if (sizeBytes > maxSendBytes) throw new MessageTooLargeError(sizeBytes, maxSendBytes);
  return sizeBytes;
}

function sizeOf(data: SendData): number {
  if (typeof data === "string") return Buffer.byteLength(data);
  return data instanceof Blob ? data.size : data.byteLength;
}

function keep(data: SendData): SendData {
  if (typeof data === "string" || data instanceof Blob) return data;
  if (data instanceof ArrayBuffer) return data.slice(0);
  return Uint8Array.from(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
}

function discard(messages: readonly Queued<SendData>[], reason: "overflow" | "expired" | "closed"): void {
  for (const { data } of messages) publish("discard", { data, reason });
}
