// Started by tests: an owner in a process of its own, to be killed. Sends its port, then a line for each run of a handler.
import { createServer } from "node:http";
import { peerListener } from "../../src/peer-listener.ts";
import { testKey } from "./records.ts";

const server = createServer();
peerListener({
  self: "owner",
  keys: [testKey],
  onFetch: (request, response) => {
    process.send?.(`ran ${request.url}`);
    if (request.url?.endsWith("/body")) response.write("half");
  },
  onConnect: (request, socket) => {
    const accept = String(request.headers["x-accept"]);
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    socket.write(Uint8Array.of(0x81, 1, 0x78));
  },
  onCluster: (tunnel) => {
    tunnel.on("error", () => undefined).write("half");
  },
}).attach(server);
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  process.send?.(typeof address === "object" && address !== null ? address.port : 0);
});
