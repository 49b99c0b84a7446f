// The router's listener: plain TCP as the original's, or TLS where that was asked for.
import { createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions, type Server as TlsServer } from "node:tls";
import { Connection, type ConnectionContext, type Outcome } from "./connection.ts";

/** What a listener is opened with. */
export interface ListenerOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** More are closed at once. */
  readonly maxConnectionCount: number;
  /** Speak TLS with these. */
  readonly tls: TlsOptions | undefined;
  readonly context: ConnectionContext;
  onOutcome(outcome: Outcome, durationMs: number): void;
  onDrop(): void;
  onDefect(error: unknown): void;
}

/** What one connection holds of what was not asked for yet. */
const bufferBytes = 16_384;

/** An open listener. */
export class Listener {
  readonly #server: Server;
  readonly #connections = new Set<Connection>();
  /** Below TLS, those whose handshake is not done included. */
  readonly #sockets = new Set<Socket>();
  readonly #options: ListenerOptions;
  #onEmpty: (() => void) | undefined;

  private constructor(options: ListenerOptions) {
    this.#options = options;
    const common = { allowHalfOpen: true, noDelay: true, highWaterMark: bufferBytes };
    if (options.tls === undefined) {
      this.#server = createServer(common, (socket) => void this.#serve(socket));
    } else {
      this.#server = createTlsServer(
        { handshakeTimeout: options.context.limits.operationMs, ...options.tls, ...common },
        (socket) => void this.#serve(socket),
      );
    }
    // Node tells of a handshake that is not done in time, and leaves its connection open.
    this.#server.on("tlsClientError", (_error: Error, socket: Socket) => socket.destroy());
    this.#server.maxConnections = options.maxConnectionCount;
    this.#server.on("drop", () => options.onDrop());
    this.#server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
  }

  /** @throws what the system says of the address */
  static async open(options: ListenerOptions): Promise<Listener> {
    const listener = new Listener(options);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    listener.#server.once("error", reject);
    listener.#server.listen({ host: options.host, port: options.port, backlog: 4096 }, resolve);
    await promise;
    listener.#server.off("error", reject);
    listener.#server.on("error", (error) => options.onDefect(error));
    return listener;
  }

  /** Where it listens. */
  get address(): { readonly host: string; readonly port: number } {
    const address = this.#server.address();
    if (address === null || typeof address === "string") return { host: this.#options.host, port: 0 };
    return { host: address.address, port: address.port };
  }

  /** Open connections, and how many of them have brought a whole request. */
  get counts(): { readonly open: number; readonly busy: number } {
    const busy = [...this.#connections].filter(({ phase }) => phase !== "receiving").length;
    return { open: this.#connections.size, busy };
  }

  /** Another certificate for connections to come. Of no effect without TLS. */
  renewTls(tls: TlsOptions): void {
    if (this.#options.tls !== undefined) (this.#server as TlsServer).setSecureContext(tls);
  }

  /** No connection is accepted any more. */
  stopAccepting(): void {
    this.#server.close();
  }

  /** Ends the connections whose request is not whole. */
  closeReceiving(): void {
    for (const connection of this.#connections) connection.closeIfReceiving();
  }

  /** Cuts off what is left. */
  destroy(): void {
    for (const connection of this.#connections) connection.destroy();
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Resolves when no connection is left. */
  empty(): Promise<void> {
    if (this.#connections.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onEmpty = resolve;
    });
  }

  async #serve(socket: Socket): Promise<void> {
    const startedMs = performance.now();
    const connection = new Connection(socket, this.#options.context);
    this.#connections.add(connection);
    try {
      const outcome = await connection.serve();
      this.#options.onOutcome(outcome, performance.now() - startedMs);
    } catch (error) {
      this.#options.onDefect(error);
    }
    this.#connections.delete(connection);
    if (this.#connections.size === 0) this.#onEmpty?.();
  }
}
