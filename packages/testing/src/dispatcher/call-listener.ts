// The wire of a dispatcher: one request a connection, read from the socket and answered with bytes.
import { createServer, type Server, type Socket } from "node:net";
import { type RequestHead, readHead } from "../core/request-head.ts";
import { refusal, renderAnswer } from "../core/wire-answer.ts";

/** A whole request. */
export interface WireCall {
  readonly head: RequestHead;
  /** Empty when the length was too much to be read. */
  readonly body: Buffer;
  readonly socket: Socket;
}

/** How a dispatcher wants its requests. */
export interface CallHandler {
  /** Whether a body is to be read; a request whose body is not is handled at once. */
  wantsBody(head: RequestHead): boolean;
  handle(call: WireCall): void;
}

/** After its answer a connection is read on for so long, so that what the peer still sends does not reset it. */
const lingerMs = 500;

export class CallListener {
  readonly #handler: CallHandler;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  port: number;
  readonly host: string;

  constructor(host: string, port: number, handler: CallHandler) {
    this.host = host;
    this.port = port;
    this.#handler = handler;
  }

  get listening(): boolean {
    return this.#server !== undefined;
  }

  /** The same port again after the first time. Rejects with the system's error. */
  async listen(): Promise<void> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket));
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ host: this.host, port: this.port, backlog: 1024 }, resolve);
    });
    const address = server.address();
    if (typeof address === "object" && address !== null) this.port = address.port;
    this.#server = server;
  }

  /** New connections are refused by the system; open ones go on. */
  async refuse(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    // The callback would wait for the connections that are open; the port is free as soon as close() returns.
    server?.close();
  }

  /** Resets every connection, but for those whose answer is written: a reset could take it away from its reader. */
  cut(): void {
    for (const socket of this.#sockets) {
      if (socket.writableFinished) socket.destroy();
      else socket.resetAndDestroy();
    }
  }

  /** Writes bytes and ends the connection. */
  static answer(socket: Socket, bytes: Uint8Array, written: () => void = () => undefined): void {
    socket.end(bytes, () => {
      socket.resume().setTimeout(lingerMs, () => socket.destroy());
      written();
    });
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.#sockets.delete(socket));
    const chunks: Buffer[] = [];
    let head: RequestHead | undefined;
    let bodyAt = 0;
    let isHandled = false;
    const look = (ended: boolean) => {
      if (isHandled) return;
      const bytes = chunks.length === 1 ? (chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(chunks);
      chunks.splice(0, chunks.length, bytes);
      if (head === undefined) {
        const read = readHead(bytes, ended);
        if (read.kind === "more") return;
        isHandled = read.kind !== "head";
        if (read.kind === "silent") return void socket.destroy();
        if (read.kind === "malformed") {
          return CallListener.answer(socket, renderAnswer(refusal(400, "malformed request line")));
        }
        ({ head, bodyAt } = read);
      }
      const length = this.#handler.wantsBody(head) ? head.contentLength : 0;
      if (bytes.length < bodyAt + length) return void (ended && socket.destroy());
      isHandled = true;
      this.#handler.handle({ head, body: bytes.subarray(bodyAt, bodyAt + length), socket });
    };
    socket.on("data", (chunk: Buffer) => {
      if (isHandled) return;
      chunks.push(chunk);
      look(false);
    });
    socket.on("end", () => look(true));
  }
}
