// A TCP connection whose bytes travel in records, as a Duplex of the bytes inside them.
//
// What the other end sealed comes out, or the stream is destroyed with a PeerRecordError before a wrong byte does. Both
// directions end with an authenticated end record and a FIN behind it, so a cut connection is never taken for an end.
// The thin part: read, open, push; write, seal, send. Order, lengths and keys are decided in core/record-layer.ts.

import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { maxRecordPlaintextBytes, type RecordOpener, type RecordSealer } from "./core/record-layer.ts";
import { TunnelLostError } from "./errors.ts";
import { TurnEnd } from "./turn-end.ts";

type Callback = (error?: Error | null) => void;

/**
 * Up to here, what is written or received waits for the end of the event loop's turn. Small writes then share a record;
 * records of many streams are opened, or sealed, one after the other (turn-end.ts says what that saves); and they leave
 * together, so that the other end wakes up once for all of them. A record costs what some kilobytes do, and waking up a
 * process more than that.
 */
const holdBytes = 16 * 1024;

/** What a stream of records is made of. */
export interface RecordStreamParts {
  sealer: RecordSealer;
  opener: RecordOpener;
  /** Bytes that came behind the head of the establishment, if any. */
  rest?: Uint8Array;
}

export class RecordStream extends Duplex {
  readonly #socket: Socket;
  readonly #sealer: RecordSealer;
  readonly #opener: RecordOpener;
  #ended = false;
  #waitingForDrain: Callback | undefined;
  /** Plain bytes of the next record. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  /** Records, in parts, that are to be sent with it. */
  #sealed: Uint8Array[] = [];
  #isSending = false;
  /** Bytes of the wire, to be opened. */
  #received: Uint8Array[] = [];
  #receivedBytes = 0;
  #isReceiving = false;
  /** What was in them, to be read. */
  #opened: Uint8Array[] = [];
  #failure: Error | undefined;

  static readonly #sending = new TurnEnd<RecordStream>(
    (stream) => stream.#sealHeld(),
    (stream) => {
      stream.#isSending = false;
      stream.#sendHeld();
    },
  );
  static readonly #receiving = new TurnEnd<RecordStream>(
    (stream) => stream.#open(),
    (stream) => {
      stream.#isReceiving = false;
      stream.#give();
    },
  );

  /** @param socket made with `allowHalfOpen`; it belongs to the stream from here on */
  constructor(socket: Socket, { sealer, opener, rest }: RecordStreamParts) {
    super({ allowHalfOpen: true, emitClose: true });
    this.#socket = socket;
    this.#sealer = sealer;
    this.#opener = opener;
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("end", () => this.#socketEnded());
    socket.on("drain", () => this.#drained());
    socket.on("timeout", () => this.emit("timeout"));
    socket.on("error", (cause) => this.#socketFailed(cause));
    socket.on("close", () => this.#socketClosed());
    if (rest !== undefined && rest.length > 0) this.#receive(rest);
  }

  /** Address of the other end, as of a socket. */
  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  get remotePort(): number | undefined {
    return this.#socket.remotePort;
  }

  get localAddress(): string | undefined {
    return this.#socket.localAddress;
  }

  get localPort(): number | undefined {
    return this.#socket.localPort;
  }

  /** As of a socket: `timeout` is emitted after so long without traffic; 0 turns it off. */
  setTimeout(timeoutMs: number, listener?: () => void): this {
    this.#socket.setTimeout(timeoutMs);
    if (listener !== undefined) this.once("timeout", listener);
    return this;
  }

  ref(): this {
    this.#socket.ref();
    return this;
  }

  unref(): this {
    this.#socket.unref();
    return this;
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: Callback): void {
    this.#hold(chunk);
    this.#sendOrWait(callback);
  }

  override _writev(chunks: { chunk: Buffer; encoding: BufferEncoding }[], callback: Callback): void {
    for (const { chunk } of chunks) this.#hold(chunk);
    this.#sendOrWait(callback);
  }

  override _final(callback: Callback): void {
    try {
      this.#flush();
      this.#socket.end(this.#sealer.end(), () => callback());
    } catch (error) {
      callback(asError(error));
    }
  }

  override _destroy(error: Error | null, callback: Callback): void {
    this.#received = [];
    this.#opened = [];
    const waiting = this.#waitingForDrain;
    this.#waitingForDrain = undefined;
    this.#socket.destroy();
    callback(error);
    waiting?.(error ?? new TunnelLostError("this end was destroyed"));
  }

  #hold(chunk: Buffer): void {
    if (this.#heldBytes + chunk.length > maxRecordPlaintextBytes) this.#seal();
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
  }

  /** Makes what is held into a record. */
  #seal(): void {
    const [first] = this.#held;
    if (first === undefined) return;
    const plain = this.#held.length === 1 ? first : Buffer.concat(this.#held, this.#heldBytes);
    this.#held = [];
    this.#heldBytes = 0;
    for (const part of this.#sealer.seal(plain)) this.#sealed.push(part);
  }

  /** A little waits for the end of the turn, and whoever writes may go on; more goes at once, as fast as it leaves. */
  #sendOrWait(callback: Callback): void {
    if (this.#sealed.length === 0 && this.#heldBytes < holdBytes) {
      if (!this.#isSending) RecordStream.#sending.add(this);
      this.#isSending = true;
      if (this.#socket.writableNeedDrain) this.#waitingForDrain = callback;
      else callback();
      return;
    }
    try {
      if (this.#flush()) callback();
      else this.#waitingForDrain = callback;
    } catch (error) {
      callback(asError(error));
    }
  }

  #sealHeld(): void {
    if (this.destroyed) return;
    try {
      this.#seal();
    } catch (error) {
      this.destroy(asError(error));
    }
  }

  #sendHeld(): void {
    if (this.destroyed) return;
    try {
      this.#flush();
    } catch (error) {
      this.destroy(asError(error));
    }
  }

  /** Sends all that is held. @returns whether the connection has room for more */
  #flush(): boolean {
    this.#seal();
    const [only] = this.#sealed;
    if (only === undefined) return !this.#socket.writableNeedDrain;
    let hasRoom = true;
    if (this.#sealed.length === 1) hasRoom = this.#socket.write(only);
    else {
      this.#socket.cork();
      for (const part of this.#sealed) hasRoom = this.#socket.write(part);
      this.#socket.uncork();
    }
    this.#sealed = [];
    return hasRoom;
  }

  #drained(): void {
    const callback = this.#waitingForDrain;
    this.#waitingForDrain = undefined;
    callback?.();
  }

  #receive(chunk: Uint8Array): void {
    if (this.destroyed) return;
    this.#received.push(chunk);
    this.#receivedBytes += chunk.length;
    if (this.#receivedBytes >= holdBytes) this.#take();
    else if (!this.#isReceiving) {
      this.#isReceiving = true;
      RecordStream.#receiving.add(this);
    }
  }

  /** Opens what was received, and gives it to the reader, at once. */
  #take(): void {
    this.#open();
    this.#give();
  }

  #open(): void {
    const received = this.#received;
    this.#received = [];
    this.#receivedBytes = 0;
    try {
      for (const chunk of received)
        for (const bytes of this.#opener.push(chunk).data) this.#opened.push(bytes);
    } catch (error) {
      this.#failure = asError(error);
    }
  }

  #give(): void {
    const opened = this.#opened;
    this.#opened = [];
    let wantsMore = true;
    for (const bytes of opened) {
      if (this.destroyed) return;
      wantsMore = this.push(bytes);
    }
    if (this.destroyed) return;
    if (this.#failure !== undefined) this.destroy(this.#failure);
    else if (this.#opener.ended && !this.#ended) {
      this.#ended = true;
      this.push(null);
      // What follows an end record can only be a FIN: read on, so that anything else is found.
      this.#socket.resume();
    } else if (!wantsMore) this.#socket.pause();
  }

  #socketFailed(cause: Error): void {
    this.#take();
    this.destroy(new TunnelLostError("the connection failed", { cause }));
  }

  #socketEnded(): void {
    this.#take();
    if (this.destroyed) return;
    try {
      this.#opener.finish();
    } catch (cause) {
      this.destroy(new TunnelLostError("it ended before its end record", { cause }));
    }
  }

  #socketClosed(): void {
    this.#take();
    if (!this.destroyed && !(this.#ended && this.writableFinished)) {
      this.destroy(new TunnelLostError("the connection was closed"));
    }
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new TunnelLostError("an unknown failure", { cause: error });
}
