// The internal listener that every daemon has: a table of routes over node:http, with bounds. Not a framework: no
// middleware, no parameters but a trailing `/*`.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { ListenError } from "./errors.ts";
import { answerRequest, type Route } from "./http-route.ts";

/** What the server serves, and its bounds. */
export interface HttpServerOptions {
  routes: readonly Route[];
  /** Asked before the routes; true when it has taken the request, whose answer is then the callee's. Default: never. */
  onRequest?: (request: IncomingMessage, response: ServerResponse) => boolean;
  /** Takes a CONNECT request; the socket, its errors too, is then the callee's. Default: the connection is closed. */
  onConnect?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Takes an Upgrade request; the socket, its errors too, is then the callee's. Default: answered like any other request. */
  onUpgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Told of what a route threw; the client gets 500 without the reason. */
  onError?: (error: unknown, request: { method: string; path: string }) => void;
  /** Longest request head. Default 16 384 (431 past it). */
  maxHeadBytes?: number;
  /** Longest request body. Default 65 536 (413 past it). */
  maxBodyBytes?: number;
  /** A head must be complete within it. Default 30 000 (408 past it). */
  headTimeoutMs?: number;
  /** A whole request, body and all, must be there within it. Default 60 000 (408 past it). */
  requestTimeoutMs?: number;
  /** How long a connection may stay without a request. Default 75 000. */
  idleTimeoutMs?: number;
}

/** A listener with its routes. */
export interface HttpServer {
  /** The server underneath, for what watches over its connections. */
  readonly server: Server;
  /**
   * Opens the listener; answers with where it is, the port chosen where 0 was asked for.
   * @throws {@link ListenError} (`CELLKIT_DAEMON_LISTEN`)
   */
  listen(address: { host: string; port: number }): Promise<{ host: string; port: number }>;
  /** Stops listening, lets requests end for `graceMs` (default 5 000), then cuts what is left, tunnels too. Idempotent. */
  close(options?: { graceMs?: number }): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Builds a server; {@link HttpServer.listen} opens it. */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { routes, maxBodyBytes = 65_536, onError = () => {} } = options;
  const {
    maxHeadBytes = 16_384,
    headTimeoutMs = 30_000,
    requestTimeoutMs = 60_000,
    idleTimeoutMs = 75_000,
  } = options;
  const answering = new Set<ServerResponse>();
  const state = { closing: undefined as Promise<void> | undefined };
  const server = createServer(
    {
      maxHeaderSize: maxHeadBytes,
      headersTimeout: headTimeoutMs,
      requestTimeout: Math.max(requestTimeoutMs, headTimeoutMs),
      keepAliveTimeout: idleTimeoutMs,
      connectionsCheckingInterval: Math.min(1_000, headTimeoutMs),
    },
    (request, response) => {
      if (state.closing !== undefined) response.setHeader("connection", "close");
      answering.add(response);
      response.once("close", () => answering.delete(response));
      if (options.onRequest?.(request, response) === true) return;
      void answerRequest({ routes, maxBodyBytes, onError }, request, response);
    },
  );
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  if (options.onConnect !== undefined) server.on("connect", options.onConnect);
  if (options.onUpgrade !== undefined) server.on("upgrade", options.onUpgrade);
  const close = ({ graceMs = 5_000 } = {}): Promise<void> => {
    if (state.closing === undefined) {
      for (const response of answering) if (!response.headersSent) response.setHeader("connection", "close");
      state.closing = closeServer(server, sockets, graceMs);
    }
    return state.closing;
  };
  return {
    server,
    listen: ({ host, port }) =>
      new Promise((resolve, reject) => {
        const refused = (cause: unknown) => reject(new ListenError(host, port, { cause }));
        if (state.closing !== undefined) return refused({ code: "CLOSED" });
        server.once("error", refused);
        server.listen({ host, port }, () => {
          server.off("error", refused);
          resolve({ host, port: (server.address() as AddressInfo).port });
        });
      }),
    close,
    [Symbol.asyncDispose]: () => close(),
  };
}

async function closeServer(server: Server, sockets: ReadonlySet<Socket>, graceMs: number): Promise<void> {
  if (!server.listening) return;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const cut = setTimeout(() => {
    for (const socket of sockets) socket.destroy();
  }, graceMs);
  await closed;
  clearTimeout(cut);
}
