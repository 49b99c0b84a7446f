// WebSockets as bytes: the benchmarks are about the tunnel, not about a WebSocket library.
import { once } from "node:events";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { handshake, webSocketKey } from "../../src/handshake.ts";
import { PeerSocket } from "../../src/peer-socket.ts";
import type { Peer, TunnelPool } from "../../src/tunnel-pool.ts";

const scope = `Counter:${"ab".repeat(32)}`;
const payloadBytes = 64;

/** A masked binary frame as a client sends it, and the length of its echo. */
const frame = Buffer.concat([
  Buffer.of(0x82, 0x80 | payloadBytes, 0, 0, 0, 0),
  Buffer.alloc(payloadBytes, 1),
]);
const echoBytes = 2 + payloadBytes;

/** Opens a socket without a tunnel. */
export async function openDirect(port: number): Promise<Duplex> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  socket.write(
    "GET /ws HTTP/1.1\r\nHost: cell\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
      `Sec-WebSocket-Key: ${webSocketKey()}\r\nSec-WebSocket-Version: 13\r\n\r\n`,
  );
  await once(socket, "data");
  return socket;
}

/** Opens a socket through a tunnel. */
export async function openThrough(pool: TunnelPool, peer: Peer): Promise<Duplex> {
  const headers = [
    "x-cells-scope",
    scope,
    "sec-websocket-key",
    webSocketKey(),
    "sec-websocket-version",
    "13",
  ];
  const answer = await handshake(await pool.dispatcher(peer, "do"), { path: "http://cell/ws", headers });
  if (answer.kind === "response") throw new TypeError(`the handshake was answered with ${answer.status}`);
  return new PeerSocket(answer.socket);
}

/** Sends a message on each socket, the next one when its echo came, until so many were answered. */
export async function converse(sockets: readonly Duplex[], messageCount: number): Promise<void> {
  let left = messageCount;
  const talk = (socket: Duplex) =>
    new Promise<void>((resolve, reject) => {
      let received = 0;
      const next = () => {
        if (left <= 0) {
          socket.off("data", read).off("error", reject);
          resolve();
          return;
        }
        left -= 1;
        socket.write(frame);
      };
      const read = (chunk: Buffer) => {
        received += chunk.length;
        if (received < echoBytes) return;
        received -= echoBytes;
        next();
      };
      socket.on("data", read).on("error", reject);
      next();
    });
  await Promise.all(sockets.map(talk));
}
