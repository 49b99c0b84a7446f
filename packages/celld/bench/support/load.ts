// The same bytes over kept-alive connections, one request at a time on each; as little of our own work as possible.
import { once } from "node:events";
import { connect, type NetConnectOpts, type Socket } from "node:net";

const request = Buffer.from(
  "GET /rooms/bench/boot HTTP/1.1\r\nHost: chat.example\r\nUser-Agent: cellkit-bench\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n\r\n",
);

/** Connections that have had one answer each. Close them soon: workerd cuts what is idle for 15 s. */
export class Load {
  readonly #connections: readonly Connection[];

  private constructor(connections: readonly Connection[]) {
    this.#connections = connections;
  }

  static async open(to: NetConnectOpts, connectionCount: number): Promise<Load> {
    const connections = await Promise.all(Array.from({ length: connectionCount }, () => Connection.dial(to)));
    return new Load(connections);
  }

  /** Sends `requestCount` requests and waits for all answers. */
  async run(requestCount: number): Promise<void> {
    let unsent = requestCount;
    const next = () => {
      unsent -= 1;
      return unsent >= 0;
    };
    await Promise.all(this.#connections.map((connection) => connection.run(next)));
  }

  close(): void {
    for (const connection of this.#connections) connection.close();
  }
}

class Connection {
  readonly #socket: Socket;
  /** Length of each answer: that of the first. */
  #answerBytes = 0;
  #receivedBytes = 0;
  #answered: () => void = () => undefined;
  #fail: (error: Error) => void = () => undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => this.#fail(new TypeError("the server closed a connection")));
  }

  static async dial(to: NetConnectOpts): Promise<Connection> {
    const socket = connect(to);
    await once(socket, "connect");
    const connection = new Connection(socket);
    let isFirst = true;
    await connection.run(() => {
      const send = isFirst;
      isFirst = false;
      return send;
    });
    return connection;
  }

  /** Sends one request after the other for as long as `next` says so. */
  run(next: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#fail = reject;
      this.#answered = () => {
        if (next()) this.#socket.write(request);
        else resolve();
      };
      this.#answered();
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    if (this.#answerBytes === 0) this.#answerBytes = lengthOf(chunk);
    this.#receivedBytes += chunk.length;
    if (this.#receivedBytes < this.#answerBytes) return;
    this.#receivedBytes -= this.#answerBytes;
    this.#answered();
  }
}

/** The length of a whole answer, from the chunk with its head. */
function lengthOf(chunk: Buffer): number {
  const text = chunk.toString("latin1");
  const length = /\r\ncontent-length: (\d+)\r\n/i.exec(text)?.[1];
  if (length === undefined || !text.startsWith("HTTP/1.1 200 ")) {
    throw new TypeError(`an answer that the load does not understand: ${text}`);
  }
  return text.indexOf("\r\n\r\n") + 4 + Number(length);
}
