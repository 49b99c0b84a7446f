// workerd's processes dial each other with `CONNECT cluster:1` at the advertised address. The request is carried to the
// local workerd's cluster port as it came, and from there on bytes only.

import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import type { Duplex } from "node:stream";

/** The cluster connections that peers hold to the local workerd. */
export class ClusterConnections {
  #openCount = 0;

  /**
   * How many are open. While one is, an answer may be under way on it, also after workerd left the cluster: it passes
   * on the calls of peers that have not heard of the move.
   */
  get openCount(): number {
    return this.#openCount;
  }

  /** Answers a CONNECT of the internal listener: carries workerd's cluster connection, refuses any other target. */
  carry(clusterPort: number | undefined, request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on("error", () => socket.destroy());
    if (request.url !== "cluster:1") {
      socket.end("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
      return;
    }
    if (clusterPort === undefined) {
      socket.end("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
      return;
    }
    this.#openCount += 1;
    socket.once("close", () => {
      this.#openCount -= 1;
      upstream.destroy();
    });
    const upstream = connect({ host: "127.0.0.1", port: clusterPort, noDelay: true });
    upstream.on("error", () => socket.destroy());
    upstream.on("close", () => socket.destroy());
    const lines = [`CONNECT ${request.url} HTTP/${request.httpVersion}`];
    for (let index = 0; index < request.rawHeaders.length; index += 2) {
      lines.push(`${request.rawHeaders[index]}: ${request.rawHeaders[index + 1]}`);
    }
    upstream.write(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
    if (head.length > 0) upstream.write(head);
    socket.pipe(upstream);
    upstream.pipe(socket);
  }
}
