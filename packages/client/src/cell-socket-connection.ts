// One open connection: `ws`, its keepalive timer, and a switch that makes everything it says later unheard.
import type { Socket } from "node:net";
import { type RawData, WebSocket } from "ws";
import type { SendData } from "./cell-socket-options.ts";
import { localCloseCode } from "./core/close-codes.ts";
import { type InboundFrame, Keepalive, type KeepalivePolicy } from "./core/socket-keepalive.ts";
import type { SocketNode } from "./core/socket-nodes.ts";

/** Why and how a connection ended. */
export interface ConnectionClose {
  readonly code: number;
  readonly reason: string;
  readonly wasClean: boolean;
  /** The error behind it, when there was one. */
  readonly cause: Error | undefined;
}

/** What a connection tells. Nothing is told after `detach`. */
export interface ConnectionListener {
  text(text: string, sizeBytes: number): void;
  binary(data: Buffer): void;
  closed(close: ConnectionClose): void;
  /** Something that was sent left this process: there is room for more. */
  flushed(): void;
  pinged(result: { rttMs: number } | { misconfigured: true }): void;
}

/** What a connection is made of. */
export interface ConnectionParts {
  readonly socket: WebSocket;
  readonly stream: Socket;
  readonly node: SocketNode;
  readonly keepalive: KeepalivePolicy | undefined;
  readonly now: () => number;
  readonly random: () => number;
}

/** An open WebSocket to one node. */
export class Connection {
  readonly node: SocketNode;
  readonly #parts: ConnectionParts;
  readonly #keepalive: Keepalive | undefined;
  #listener: ConnectionListener | undefined;
  #timer: NodeJS.Timeout | undefined;
  #turn: NodeJS.Immediate | undefined;
  #dueMs = Number.POSITIVE_INFINITY;
  #error: Error | undefined;
  #ended: { code: number; reason: string } | undefined;

  constructor(parts: ConnectionParts, listener: ConnectionListener) {
    const { socket, keepalive, now, random } = parts;
    this.node = parts.node;
    this.#parts = parts;
    this.#listener = listener;
    this.#keepalive = keepalive === undefined ? undefined : new Keepalive(keepalive, random, now());
    socket.on("message", (data, isBinary) => this.#received(data, isBinary));
    socket.on("ping", () => this.#heard({ kind: "ping" }));
    socket.on("pong", () => this.#heard({ kind: "pong" }));
    socket.on("error", (error) => this.#failed(error));
    socket.on("close", (code, reason) => this.#closed(code, reason.toString()));
    this.#arm();
  }

  /** The subprotocol that the server chose. */
  get protocol(): string {
    return this.#parts.socket.protocol;
  }

  /** False once either side began to close: what is sent then is lost. */
  get writable(): boolean {
    return this.#parts.socket.readyState === WebSocket.OPEN;
  }

  /** Bytes handed over that have not left this process. */
  get bufferedAmount(): number {
    return this.#parts.socket.bufferedAmount;
  }

  send(data: SendData): void {
    this.#parts.socket.send(data as Buffer, this.#flushed);
  }

  /** Stops reading, down to TCP; keepalive judges nothing meanwhile. */
  pause(): void {
    if (this.#parts.socket.isPaused) return;
    this.#parts.socket.pause();
    this.#keepalive?.pause();
    this.#arm();
  }

  resume(): void {
    if (!this.#parts.socket.isPaused) return;
    this.#parts.socket.resume();
    this.#keepalive?.resume(this.#parts.now());
    this.#arm();
  }

  /** Says goodbye; `closed` follows when the peer answered, or when `ws` stopped waiting. */
  close(code: number, reason: string): void {
    this.#disarm();
    this.#parts.socket.close(code, reason);
    // A paused socket would never see the answer.
    this.#parts.socket.resume();
  }

  /** Cuts the connection. `closed` follows with what is given here. */
  terminate(code: number, reason: string): void {
    this.#ended ??= { code, reason };
    this.#disarm();
    this.#parts.socket.terminate();
  }

  /** From now on nothing that happens here is told. */
  detach(): void {
    this.#listener = undefined;
    this.#disarm();
  }

  ref(): void {
    this.#parts.stream.ref();
  }

  unref(): void {
    this.#parts.stream.unref();
  }

  readonly #flushed = (): void => this.#listener?.flushed();

  #received(data: RawData, isBinary: boolean): void {
    const bytes = data as Buffer;
    if (isBinary) {
      this.#heard({ kind: "binary" });
      this.#listener?.binary(bytes);
      return;
    }
    const text = bytes.toString();
    if (!this.#heard({ kind: "text", text })) this.#listener?.text(text, bytes.length);
  }

  /** @returns true when the frame was an answer to our ping */
  #heard(frame: InboundFrame): boolean {
    const inbound = this.#keepalive?.received(frame, this.#parts.now());
    if (inbound?.rttMs !== undefined) this.#listener?.pinged({ rttMs: inbound.rttMs });
    // An answer may end a wait that is longer than the interval. Later times need nothing: an early wake-up is harmless.
    if (this.#keepalive !== undefined && this.#keepalive.wakeAtMs < this.#dueMs) this.#arm();
    return inbound?.swallow ?? false;
  }

  #failed(error: Error): void {
    this.#error ??= error;
    const code = localCloseCode((error as NodeJS.ErrnoException).code);
    if (code === undefined) return;
    // This side refused what the peer sent. `ws` says so to the peer and would report 1006 once that is done.
    this.#ended ??= { code, reason: error.message };
    this.#closed(code, error.message);
  }

  #closed(code: number, reason: string): void {
    this.#disarm();
    const listener = this.#listener;
    this.#listener = undefined;
    const ended = this.#ended;
    listener?.closed({
      code: ended?.code ?? code,
      reason: ended?.reason ?? reason,
      wasClean: ended === undefined && code !== 1006,
      cause: this.#error,
    });
  }

  #arm(): void {
    this.#disarm();
    const dueMs = this.#keepalive?.wakeAtMs ?? Number.POSITIVE_INFINITY;
    if (dueMs === Number.POSITIVE_INFINITY || this.#listener === undefined) return;
    this.#dueMs = dueMs;
    const delayMs = Math.max(0, Math.ceil(dueMs - this.#parts.now()));
    // Timers come before what has arrived when the loop was held up: an answer that lies there is read before it is missed.
    this.#timer = setTimeout(() => {
      this.#turn = setImmediate(() => this.#wake(dueMs));
    }, delayMs);
    // The open connection holds the process, not its timer.
    this.#timer.unref();
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#turn);
    this.#timer = undefined;
    this.#turn = undefined;
    this.#dueMs = Number.POSITIVE_INFINITY;
  }

  #wake(dueMs: number): void {
    const { keepalive, now, socket, stream } = this.#parts;
    // Once either side began to close, `ws` watches the time.
    if (keepalive === undefined || !this.writable) return;
    const wake = this.#keepalive?.wake(now(), dueMs, stream.bytesRead);
    if (wake === undefined) return;
    for (const kind of wake.send) {
      if (kind === "text") socket.send(keepalive.request);
      else socket.ping();
    }
    if (wake.misconfigured) this.#listener?.pinged({ misconfigured: true });
    if (wake.dead) this.terminate(1006, "keepalive timeout");
    else this.#arm();
  }
}
