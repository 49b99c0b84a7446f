// Started by the benchmarks: the owner's side in a process of its own, so that its CPU time can be told apart.
// Argument: records mode, or `plain` for node:http alone. Sends its port, then its CPU time in microseconds when asked
// (`cpu`), or the bytes of its heap and buffers (`memory`).
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { FleetKey } from "../../src/core/fleet-key.ts";
import type { RecordsMode } from "../../src/core/records-offer.ts";
import { peerListener } from "../../src/peer-listener.ts";

const [mode = "plain"] = process.argv.slice(2);
const key = new FleetKey(Buffer.alloc(32, 1));

const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
const answer = (_: IncomingMessage, response: ServerResponse) => void response.end();
const accept = (request: IncomingMessage, socket: Duplex, head: Buffer) => {
  sockets.handleUpgrade(request, socket, head, (ws) => ws.on("message", (data) => ws.send(data)));
};

const server = createServer();
if (mode === "plain") server.on("request", answer).on("upgrade", accept);
else {
  peerListener({
    self: "owner",
    keys: [key],
    records: mode as RecordsMode,
    onFetch: answer,
    onConnect: accept,
    onCluster: (tunnel) => void tunnel.pipe(tunnel),
  }).attach(server);
}

process.on("message", (question) => {
  if (question === "memory") {
    globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    process.send?.(heapUsed + external);
    return;
  }
  const { user, system } = process.cpuUsage();
  process.send?.(user + system);
});
process.on("disconnect", () => process.exit());
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  process.send?.(typeof address === "object" && address !== null ? address.port : 0);
});
