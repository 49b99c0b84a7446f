// A TCP connection whose bytes travel in records, as a Duplex of the bytes inside them.
//
// What the other end sealed comes out, or the stream is destroyed with a PeerRecordError before a wrong byte does. Both
// directions end with an authenticated end record and a FIN behind it, so a cut connection is never taken for an end.
// The thin part: read, open, push; write, seal, send. Order, lengths and keys are decided in core/record-layer.ts.

import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import type { RecordOpener, RecordSealer } from "./core/record-layer.ts";
import { TunnelLostError } from "./errors.ts";

/** Chunks that wait together are sealed as one record up to here: one record costs about what a kilobyte does. */
const coalesceBytes = 64 * 1024;

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
  #waitingForDrain: ((error?: Error | null) => void) | undefined;

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
    socket.on("error", (cause) => this.destroy(new TunnelLostError("the connection failed", { cause })));
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

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    try {
      this.#send(this.#sealer.seal(chunk), callback);
    } catch (error) {
      callback(asError(error));
    }
  }

  override _writev(
    chunks: { chunk: Buffer; encoding: BufferEncoding }[],
    callback: (error?: Error | null) => void,
  ): void {
    try {
      const records: Uint8Array[] = [];
      let waiting: Buffer[] = [];
      let waitingBytes = 0;
      const seal = () => {
        const [first] = waiting;
        if (first === undefined) return;
        records.push(
          ...this.#sealer.seal(waiting.length === 1 ? first : Buffer.concat(waiting, waitingBytes)),
        );
        waiting = [];
        waitingBytes = 0;
      };
      for (const { chunk } of chunks) {
        if (waitingBytes + chunk.length > coalesceBytes) seal();
        waiting.push(chunk);
        waitingBytes += chunk.length;
      }
      seal();
      this.#send(records, callback);
    } catch (error) {
      callback(asError(error));
    }
  }

  override _final(callback: (error?: Error | null) => void): void {
    try {
      this.#socket.end(this.#sealer.end(), () => callback());
    } catch (error) {
      callback(asError(error));
    }
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    const waiting = this.#waitingForDrain;
    this.#waitingForDrain = undefined;
    this.#socket.destroy();
    callback(error);
    waiting?.(error ?? new TunnelLostError("this end was destroyed"));
  }

  #send(records: readonly Uint8Array[], callback: (error?: Error | null) => void): void {
    const [only] = records;
    let hasRoom = true;
    if (records.length === 1 && only !== undefined) hasRoom = this.#socket.write(only);
    else {
      this.#socket.cork();
      for (const record of records) hasRoom = this.#socket.write(record);
      this.#socket.uncork();
    }
    if (hasRoom) callback();
    else this.#waitingForDrain = callback;
  }

  #drained(): void {
    const callback = this.#waitingForDrain;
    this.#waitingForDrain = undefined;
    callback?.();
  }

  #receive(chunk: Uint8Array): void {
    if (this.destroyed) return;
    try {
      const { data, ended } = this.#opener.push(chunk);
      let wantsMore = true;
      for (const bytes of data) wantsMore = this.push(bytes);
      if (ended && !this.#ended) {
        this.#ended = true;
        this.push(null);
        // What follows an end record can only be a FIN: read on, so that anything else is found.
        this.#socket.resume();
      } else if (!wantsMore) this.#socket.pause();
    } catch (error) {
      this.destroy(asError(error));
    }
  }

  #socketEnded(): void {
    try {
      this.#opener.finish();
    } catch (cause) {
      this.destroy(new TunnelLostError("it ended before its end record", { cause }));
    }
  }

  #socketClosed(): void {
    if (!this.destroyed && !(this.#ended && this.writableFinished)) {
      this.destroy(new TunnelLostError("the connection was closed"));
    }
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new TunnelLostError("an unknown failure", { cause: error });
}
