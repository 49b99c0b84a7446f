// A WebSocket client that keeps what it was sent and knows how it was closed.
import WebSocket from "ws";
import { until } from "../../../../tools/test-support/until.ts";

/** How a socket ended; 1006 is what a client reports when no close frame came. */
export interface SocketClose {
  code: number;
  reason: string;
}

/** One open socket. */
export class SocketClient {
  readonly messages: string[] = [];
  /** How it was closed, once it was. */
  close: SocketClose | undefined;
  readonly #socket: WebSocket;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data: Buffer) => this.messages.push(data.toString()));
    socket.on("close", (code, reason) => {
      this.close = { code, reason: reason.toString() };
    });
    // A close follows and tells more.
    socket.on("error", () => undefined);
  }

  /** Opens a socket; resolves when the cell's hello has come. @param url `ws://…` or `http://…` */
  static async open(url: string): Promise<SocketClient> {
    const client = new SocketClient(new WebSocket(url.replace(/^http/, "ws")));
    await until(`hello from ${url}`, () => {
      if (client.close !== undefined) throw new Error(`closed before its hello: ${client.close.code}`);
      return client.messages.length > 0;
    });
    return client;
  }

  /** The id of the cell's instance that took the socket, from its hello. */
  get boot(): unknown {
    return (JSON.parse(this.messages[0] ?? "null") as { boot?: unknown } | null)?.boot;
  }

  /** Sends a text, as long as it is. */
  send(text: string): void {
    this.#socket.send(text, { compress: false });
  }

  /** Sends a text and waits for the next message. */
  async ask(text: string): Promise<string> {
    const before = this.messages.length;
    this.send(text);
    return await until(`answer to ${text}`, () => this.messages[before]);
  }

  /** Waits until it is closed. */
  closed(boundMs = 30_000): Promise<SocketClose> {
    return until("close of a socket", () => this.close, boundMs);
  }

  /** Ends it without a word. */
  end(): void {
    this.#socket.terminate();
  }
}
