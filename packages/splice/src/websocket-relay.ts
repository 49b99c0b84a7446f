// Both directions of an upgraded connection. Bytes pass as they come; the scanners only know where frames end, so that
// a close frame of ours can stand between two frames of the upstream's.

import type { Socket } from "node:net";
import { closeFrame, echoCode } from "./core/close-frame.ts";
import { FrameScanner } from "./core/frame-scanner.ts";
import type { CloseReason } from "./options.ts";
import type { UpstreamLink } from "./upstream-link.ts";

export interface RelayOptions {
  /** Sent to the client when the upstream is lost. */
  ownerUnavailable: CloseReason;
  /** Longest wait for the client's side of the closing handshake. */
  closeWaitMs: number;
}

export class WebSocketRelay {
  readonly #client: Socket;
  readonly #options: RelayOptions;
  readonly #fromClient = new FrameScanner();
  readonly #fromUpstream = new FrameScanner();
  #link: UpstreamLink | undefined;
  /** A close frame of ours that waits for the end of a frame of the upstream's. */
  #pendingClose: Uint8Array | undefined;
  /** Our close frame was written; nothing of the upstream may follow it. */
  #closeSent = false;
  /** The client will send nothing more: no answer to a close frame is to be waited for. */
  #clientEnded = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(client: Socket, link: UpstreamLink, options: RelayOptions) {
    this.#client = client;
    this.#link = link;
    this.#options = options;
    link.handTo({
      data: (chunk) => this.upstreamData(chunk),
      drained: () => this.#client.resume(),
      gone: () => this.#upstreamGone(),
    });
  }

  clientData(chunk: Buffer): void {
    // Both sides have closed: what a client sends behind its close frame means nothing (RFC 6455 §5.5.1).
    if (this.#closeSent && this.#fromClient.closed) return;
    scan(this.#fromClient, chunk);
    if (this.#link !== undefined && !this.#link.socket.write(chunk)) this.#client.pause();
    if (this.#closeSent && this.#fromClient.closed) this.#endBoth();
  }

  upstreamData(chunk: Buffer): void {
    if (this.#closeSent) return;
    let offset = 0;
    while (offset < chunk.length) {
      offset = this.#fromUpstream.advance(chunk, offset);
      if (this.#pendingClose === undefined || !this.#fromUpstream.atBoundary) continue;
      // The frame that was waited for may have been the upstream's own close frame: nothing may follow that.
      if (this.#fromUpstream.closed) this.#pendingClose = undefined;
      else {
        this.#link?.sendOn(this.#client, chunk.subarray(0, offset));
        this.#sendClose(this.#pendingClose);
        return;
      }
    }
    this.#link?.sendOn(this.#client, chunk);
  }

  /** The client can take more. */
  resume(): void {
    this.#link?.socket.resume();
  }

  /** Closes from here with a close frame at the next frame boundary, then waits, bounded, for the client's answer. */
  close({ code, reason }: CloseReason): void {
    if (this.#closeSent || this.#pendingClose !== undefined) return;
    this.#startTimer();
    if (this.#fromUpstream.closed) return;
    const frame = closeFrame(code, reason);
    if (this.#fromUpstream.atBoundary) this.#sendClose(frame);
    else this.#pendingClose = frame;
  }

  /** The client sent its FIN: pass it on, and let the upstream end its side. */
  clientEnded(): void {
    this.#clientEnded = true;
    this.#startTimer();
    if (this.#link === undefined || this.#closeSent) this.#endBoth();
    else this.#link.socket.end();
  }

  /** The client's connection is gone. @param finished told once the upstream has let go too */
  clientGone(finished: () => void): void {
    clearTimeout(this.#timer);
    const link = this.#link;
    this.#link = undefined;
    if (link === undefined) finished();
    else link.finish(this.#options.closeWaitMs, finished);
  }

  /** The upstream ended or reset: the client must still get a close frame, if any place for one is left. */
  #upstreamGone(): void {
    this.#link = undefined;
    this.#client.resume();
    this.#startTimer();
    if (this.#closeSent) return;
    if (this.#fromUpstream.closed || !this.#fromUpstream.atBoundary) {
      this.#client.end();
      return;
    }
    const clientCode = this.#fromClient.closeCode;
    if (clientCode !== undefined) this.#sendClose(closeFrame(echoCode(clientCode), ""));
    else {
      const { code, reason } = this.#options.ownerUnavailable;
      this.#sendClose(closeFrame(code, reason));
    }
  }

  #sendClose(frame: Uint8Array): void {
    this.#pendingClose = undefined;
    this.#closeSent = true;
    this.#client.write(frame);
    this.#link?.socket.resume();
    if (this.#fromClient.closed || this.#clientEnded) this.#endBoth();
  }

  #endBoth(): void {
    this.#startTimer();
    this.#client.end();
    this.#link?.socket.end();
  }

  #startTimer(): void {
    this.#timer ??= setTimeout(() => this.#client.destroy(), this.#options.closeWaitMs);
  }
}

function scan(scanner: FrameScanner, chunk: Buffer): void {
  let offset = 0;
  while (offset < chunk.length) offset = scanner.advance(chunk, offset);
}
