/** A scriptable node for socket tests: a real HTTP server with real WebSockets on 127.0.0.1. */
import { createServer, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";

/** What a drain refusal looks like on the wire. */
export const REFUSAL = [
  "HTTP/1.1 503 Service Unavailable",
  "content-type: application/json",
  "retry-after: 1",
  "connection: close",
  "content-length: 28",
  "",
  '{"ok":false,"draining":true}',
].join("\r\n");

/** A refusal of any other kind. */
export function answer(status: number, body = "", headers: Record<string, string> = {}): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} X\r\nconnection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${lines.join("")}\r\n${body}`;
}

/** What a node does with an upgrade: accept it, answer with these bytes, or say nothing. */
export type Reaction = "accept" | "silence" | string;

export class SocketNodeServer {
  /** Decides about each upgrade; `n` counts from 1. */
  react: (n: number, request: IncomingMessage) => Reaction = () => "accept";
  /** Called for each accepted socket, before anything is read from it. */
  accepted: (socket: WebSocket, n: number) => void = () => {};
  /** Status of the health answer. */
  health = 200;
  /** Every upgrade request so far. */
  readonly requests: IncomingMessage[] = [];
  /** When each came, milliseconds on the monotonic clock. */
  readonly timesMs: number[] = [];
  /** Text and binary messages received so far, over all sockets, keepalive included. */
  readonly received: (string | Buffer)[] = [];
  /** Close codes and reasons as this side saw them. */
  readonly closes: { code: number; reason: string }[] = [];
  readonly #server: Server;
  readonly #sockets: WebSocketServer;
  readonly #raw = new Set<Socket>();

  private constructor(server: Server, sockets: WebSocketServer) {
    this.#server = server;
    this.#sockets = sockets;
  }

  static async start(options: { port?: number; autoPong?: boolean } = {}): Promise<SocketNodeServer> {
    const server = createServer();
    const sockets = new WebSocketServer({
      noServer: true,
      clientTracking: true,
      autoPong: options.autoPong ?? true,
    });
    const node = new SocketNodeServer(server, sockets);
    server.on("connection", (socket) => {
      node.#raw.add(socket);
      socket.on("close", () => node.#raw.delete(socket));
      socket.on("error", () => socket.destroy());
    });
    server.on("request", (_, response) => response.writeHead(node.health).end());
    server.on("upgrade", (request, socket: Socket, head) => node.#upgrade(request, socket, head));
    await new Promise<void>((resolve) => server.listen(options.port ?? 0, "127.0.0.1", resolve));
    return node;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get id(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** The open WebSockets. */
  get sockets(): WebSocket[] {
    return [...this.#sockets.clients];
  }

  /** Writes bytes to every connection, past the WebSocket library. */
  writeRaw(bytes: Uint8Array): void {
    for (const socket of this.#raw) socket.write(bytes);
  }

  /** Cuts every connection without a goodbye. */
  cut(): void {
    for (const socket of this.#raw) socket.destroy();
  }

  /** As SIGKILL: cuts everything and listens no more. */
  async kill(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cut();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#server.listening) await this.kill();
  }

  #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    this.requests.push(request);
    this.timesMs.push(performance.now());
    const n = this.requests.length;
    const reaction = this.react(n, request);
    if (reaction === "silence") return;
    if (reaction !== "accept") {
      socket.end(reaction);
      return;
    }
    this.#sockets.handleUpgrade(request, socket, head, (accepted) => {
      accepted.on("error", () => accepted.terminate());
      accepted.on("close", (code, reason) => this.closes.push({ code, reason: reason.toString() }));
      accepted.on("message", (data, isBinary) => {
        this.received.push(isBinary ? (data as Buffer) : data.toString());
      });
      this.accepted(accepted, n);
    });
  }
}

/** A TCP server that does with each connection what it is told; for peers that do not speak. */
export class RawServer {
  readonly connections: Socket[] = [];
  readonly #server = createTcpServer();

  static async start(onConnection: (socket: Socket) => void = () => {}): Promise<RawServer> {
    const raw = new RawServer();
    raw.#server.on("connection", (socket) => {
      raw.connections.push(socket);
      socket.on("error", () => socket.destroy());
      socket.resume();
      onConnection(socket);
    });
    await new Promise<void>((resolve) => raw.#server.listen(0, "127.0.0.1", resolve));
    return raw;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** True once the client has ended each connection there was. */
  get abandoned(): boolean {
    return (
      this.connections.length > 0 &&
      this.connections.every(({ readableEnded, destroyed }) => readableEnded || destroyed)
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.connections) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** A TCP relay that can freeze: what is connected then passes nothing on, either way, and nothing is closed. */
export class FreezingRelay {
  readonly #raw: RawServer;
  readonly #pairs: readonly [Socket, Socket][];

  private constructor(raw: RawServer, pairs: readonly [Socket, Socket][]) {
    this.#raw = raw;
    this.#pairs = pairs;
  }

  static async start(port: number): Promise<FreezingRelay> {
    const pairs: [Socket, Socket][] = [];
    const raw = await RawServer.start((near) => {
      const far = connect(port, "127.0.0.1");
      far.on("error", () => near.destroy());
      near.pipe(far);
      far.pipe(near);
      pairs.push([near, far]);
    });
    return new FreezingRelay(raw, pairs);
  }

  get url(): string {
    return this.#raw.url;
  }

  /** Freezes what is connected; connections that come later pass. */
  freeze(): void {
    for (const [near, far] of this.#pairs) {
      near.unpipe(far);
      far.unpipe(near);
      near.pause();
      far.pause();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const [, far] of this.#pairs) far.destroy();
    await this.#raw[Symbol.asyncDispose]();
  }
}

/** Waits until the condition holds, looking every few milliseconds; fails after the deadline with what was waited for. */
export async function until(what: string, condition: () => boolean, deadlineMs = 30_000): Promise<void> {
  const endMs = performance.now() + deadlineMs;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`waited ${deadlineMs} ms for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
