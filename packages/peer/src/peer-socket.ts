// The dialling end of a WebSocket in a tunnel: raw bytes both ways, and one last close frame in the name of an owner that
// is gone (spec B4). Frames are not parsed to be passed on; a scanner only knows where they end.

import { Duplex } from "node:stream";
import { FrameScanner, ownerUnavailableFrame } from "./core/frame-scanner.ts";

type Callback = (error?: Error | null) => void;

export class PeerSocket extends Duplex {
  readonly #tunnel: Duplex;
  readonly #scanner = new FrameScanner();
  #isOver = false;
  #waitingForDrain: Callback | undefined;

  constructor(tunnel: Duplex) {
    super({ allowHalfOpen: true });
    this.#tunnel = tunnel;
    tunnel.on("data", (chunk: Buffer) => {
      this.#scanner.scan(chunk);
      if (!this.push(chunk)) tunnel.pause();
    });
    tunnel.on("end", () => this.#ownerGone());
    // An error of the tunnel is the owner's loss, too: who reads sees how the WebSocket ends, not why.
    tunnel.on("error", () => this.#ownerGone());
    tunnel.on("close", () => this.#ownerGone());
    tunnel.on("drain", () => this.#writeDone());
  }

  /** The owner is given up: what it said so far is read, then the close frame, then the end. */
  lose(): void {
    this.#ownerGone();
    this.#tunnel.destroy();
  }

  override _read(): void {
    this.#tunnel.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: Callback): void {
    if (this.#isOver || this.#tunnel.write(chunk)) callback();
    else this.#waitingForDrain = callback;
  }

  override _writev(chunks: { chunk: Buffer; encoding: BufferEncoding }[], callback: Callback): void {
    if (this.#isOver) {
      callback();
      return;
    }
    let hasRoom = true;
    this.#tunnel.cork();
    for (const { chunk } of chunks) hasRoom = this.#tunnel.write(chunk);
    this.#tunnel.uncork();
    if (hasRoom) callback();
    else this.#waitingForDrain = callback;
  }

  override _final(callback: Callback): void {
    if (this.#isOver) callback();
    else this.#tunnel.end(() => callback());
  }

  override _destroy(error: Error | null, callback: Callback): void {
    this.#isOver = true;
    this.#tunnel.destroy();
    this.#writeDone();
    callback(error);
  }

  #writeDone(): void {
    const callback = this.#waitingForDrain;
    this.#waitingForDrain = undefined;
    callback?.();
  }

  #ownerGone(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#scanner.atBoundary && !this.#scanner.closed) this.push(ownerUnavailableFrame);
    this.push(null);
    // What the client still says has no reader; its end must not wait for one.
    this.#tunnel.end();
    this.#writeDone();
  }
}
