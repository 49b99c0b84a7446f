// The wire of a dispatcher: one request a connection, read from the socket and answered with bytes.
import { createServer, type Server, type Socket } from "node:net";
import { type RequestHead, readHead } from "../core/request-head.ts";
import { listen } from "../listen.ts";

/** A whole request. */
export interface WireCall {
  readonly head: RequestHead;
  /** Empty when the length was too much to be read. */
  readonly body: Buffer;
  readonly socket: Socket;
}

/** What came on a connection and was no whole request. */
export interface BrokenCall {
  /** Answered 400, left without an answer, or at its end before it was whole. */
  readonly kind: "malformed" | "silent" | "unfinished";
  /** As far as it could be read. */
  readonly head: RequestHead | undefined;
  /** Everything that came. */
  readonly bytes: Buffer;
  readonly socket: Socket;
}

/** How a dispatcher wants its requests. */
export interface CallHandler {
  /** Whether a body is to be read; a request whose body is not is handled at once. */
  wantsBody(head: RequestHead): boolean;
  handle(call: WireCall): void;
  /** Answers the malformed ones with 400, and ends the connection. */
  handleBroken(call: BrokenCall): void;
}

/** After its answer a connection is read on for so long, so that what the peer still sends does not reset it. */
const lingerMs = 500;

export class CallListener {
  readonly #handler: CallHandler;
  readonly #connections = new Set<Connection>();
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

  /** The same port again after the first time. @throws ListenError */
  async listen(): Promise<void> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket));
    this.port = await listen(server, { host: this.host, port: this.port, backlog: 1024 });
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
    for (const connection of this.#connections) connection.cut();
  }

  /** Writes bytes and ends the connection. */
  static answer(socket: Socket, bytes: Uint8Array, written: () => void = () => undefined): void {
    socket.end(bytes, () => {
      socket.resume().setTimeout(lingerMs, () => socket.destroy());
      written();
    });
  }

  #accept(socket: Socket): void {
    const connection = new Connection(socket, this.#handler);
    this.#connections.add(connection);
    socket.once("close", () => this.#connections.delete(connection));
  }
}

/** One connection, on which one request comes. */
class Connection {
  readonly #socket: Socket;
  readonly #handler: CallHandler;
  #bytes: Buffer = Buffer.alloc(0);
  #head: RequestHead | undefined;
  #bodyAt = 0;
  #isHandled = false;

  constructor(socket: Socket, handler: CallHandler) {
    this.#socket = socket;
    this.#handler = handler;
    socket.on("data", (chunk: Buffer) => {
      if (this.#isHandled) return;
      this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk]);
      this.#look(false);
    });
    socket.on("end", () => this.#look(true));
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.#break("unfinished"));
  }

  cut(): void {
    // Whoever is gone hears of no request any more.
    this.#isHandled = true;
    if (this.#socket.writableFinished) this.#socket.destroy();
    else this.#socket.resetAndDestroy();
  }

  #look(ended: boolean): void {
    if (this.#isHandled) return;
    if (this.#head === undefined) {
      const read = readHead(this.#bytes, ended);
      if (read.kind === "more") return;
      if (read.kind !== "head") {
        this.#break(read.kind);
        return;
      }
      this.#head = read.head;
      this.#bodyAt = read.bodyAt;
    }
    const bodyEnd = this.#bodyAt + (this.#handler.wantsBody(this.#head) ? this.#head.contentLength : 0);
    if (this.#bytes.length < bodyEnd) {
      if (ended) this.#break("unfinished");
      return;
    }
    this.#isHandled = true;
    const body = this.#bytes.subarray(this.#bodyAt, bodyEnd);
    this.#handler.handle({ head: this.#head, body, socket: this.#socket });
  }

  #break(kind: BrokenCall["kind"]): void {
    if (this.#isHandled) return;
    this.#isHandled = true;
    // Who only looks whether somebody listens makes no call.
    if (this.#bytes.length === 0) return void this.#socket.destroy();
    this.#handler.handleBroken({ kind, head: this.#head, bytes: this.#bytes, socket: this.#socket });
  }
}
