import type { Socket } from "node:net";
import type { ReadBuffer } from "./read-buffer.ts";
import { UpstreamSocket } from "./upstream-socket.ts";

/** What a link tells its connection. After `gone` nothing more comes. */
export interface UpstreamEvents {
  data(chunk: Buffer): void;
  /** Written bytes have left; more may be written. */
  drained(): void;
  /** @param clean the upstream ended its side in order (FIN), having taken all that was written to it */
  gone(clean: boolean): void;
}

/** One connection to the upstream's unix socket, used by one client connection only. */
export class UpstreamLink {
  readonly path: string;
  readonly socket: Socket;
  /** Whether the dial has succeeded: before that no byte can have been delivered. */
  connected = false;
  /** When the last answer ended, on the caller's clock. */
  idleSinceMs = 0;
  #events: UpstreamEvents | undefined;

  /** Dials at once; what is written meanwhile waits for the dial. */
  constructor(path: string, readBuffer: ReadBuffer, events: UpstreamEvents) {
    this.path = path;
    this.#events = events;
    const socket = new UpstreamSocket({
      allowHalfOpen: true,
      onread: {
        buffer: readBuffer.bytes,
        callback: (lengthBytes) => {
          this.#events?.data(readBuffer.take(lengthBytes));
          return true;
        },
      },
    });
    this.socket = socket;
    socket.connect({ path });
    socket.on("connect", () => {
      this.connected = true;
    });
    socket.on("drain", () => this.#events?.drained());
    socket.on("end", () => this.#gone(!socket.refusedBytes));
    socket.on("error", () => this.#gone(false));
    socket.on("close", () => this.#gone(false));
  }

  /** Writes bytes to the client. When it is slow this link pauses: `socket.resume()` goes on. */
  sendOn(client: Socket, bytes: Uint8Array): void {
    if (!client.write(bytes)) this.socket.pause();
  }

  /** Another receiver takes over, as after an upgrade. */
  handTo(events: UpstreamEvents): void {
    this.#events = events;
  }

  /** Drops the connection at once; no event comes any more. */
  close(): void {
    this.#events = undefined;
    this.socket.destroy();
  }

  /**
   * Sends what is written and a FIN, and waits, for so long at most, until the upstream has ended its side as well; no
   * event comes any more. The wait matters in a drain: until the upstream let go, a WebSocket holds its cell back.
   */
  finish(boundMs: number, finished: () => void): void {
    this.#events = undefined;
    const { socket } = this;
    if (socket.destroyed) {
      finished();
      return;
    }
    const timer = setTimeout(() => socket.destroy(), boundMs);
    socket.once("close", () => {
      clearTimeout(timer);
      finished();
    });
    socket.resume();
    socket.end();
  }

  #gone(clean: boolean): void {
    const events = this.#events;
    this.#events = undefined;
    this.socket.destroy();
    events?.gone(clean);
  }
}
