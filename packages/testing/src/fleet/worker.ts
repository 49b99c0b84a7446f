// What stands behind a node's public listener in place of workerd: an HTTP server on a unix socket.
import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import { WebSocketServer } from "ws";
import type { ResolvedFleetOptions } from "./options.ts";

export class Worker {
  readonly path: string;
  /** Requests that reached it, upgrades included. */
  requestCount = 0;
  readonly #server: Server;
  readonly #connections = new Set<Socket>();

  private constructor(path: string, server: Server) {
    this.path = path;
    this.#server = server;
  }

  static async start(path: string, node: string, { app, socket }: ResolvedFleetOptions): Promise<Worker> {
    const sockets = new WebSocketServer({ noServer: true });
    const server = createServer((request, response) => {
      worker.requestCount += 1;
      app(request, response, node);
    });
    const worker = new Worker(path, server);
    server.on("connection", (connection: Socket) => {
      worker.#connections.add(connection);
      connection.once("close", () => worker.#connections.delete(connection));
    });
    server.on("upgrade", (request, connection, head) => {
      worker.requestCount += 1;
      connection.on("error", () => connection.destroy());
      sockets.handleUpgrade(request, connection, head, (accepted) => {
        accepted.on("error", () => accepted.terminate());
        socket(accepted, request, node);
      });
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(path, resolve);
    });
    return worker;
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const connection of this.#connections) connection.destroy();
    await closed;
  }
}
