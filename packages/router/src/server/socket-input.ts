import type { Socket } from "node:net";

/** Why there are no more bytes: the peer ended, nothing came in time, or the connection is gone. */
export type InputEnd = "end" | "timeout" | "closed";

/** The bytes of a connection, asked for piece by piece, so that nobody sends faster than they are used. */
export class SocketInput {
  readonly #socket: Socket;
  readonly #timeoutMs: number;
  #rest: Buffer | undefined;
  #end: InputEnd | undefined;
  #wake: (() => void) | undefined;

  /** @param timeoutMs how long one wait for bytes may take */
  constructor(socket: Socket, timeoutMs: number) {
    this.#socket = socket;
    this.#timeoutMs = timeoutMs;
    const wake = () => this.#wake?.();
    socket.on("readable", wake);
    socket.on("end", () => this.#ended("end"));
    socket.on("close", () => this.#ended("closed"));
    socket.on("timeout", () => this.#ended("timeout"));
    socket.on("error", () => this.#ended("closed"));
  }

  /** Puts bytes back that were read and not used. */
  unread(rest: Buffer): void {
    if (rest.length > 0) this.#rest = rest;
  }

  /** The next bytes, or why there are none. */
  async next(): Promise<Buffer | InputEnd> {
    const rest = this.#rest;
    if (rest !== undefined) {
      this.#rest = undefined;
      return rest;
    }
    for (;;) {
      const chunk = this.#socket.read() as Buffer | null;
      if (chunk !== null) return chunk;
      if (this.#end !== undefined) return this.#end;
      this.#socket.setTimeout(this.#timeoutMs);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
      this.#socket.setTimeout(0);
    }
  }

  /** Ends a wait as if the peer had gone. */
  close(): void {
    this.#ended("closed");
  }

  #ended(end: InputEnd): void {
    this.#end ??= end;
    this.#wake?.();
  }
}
