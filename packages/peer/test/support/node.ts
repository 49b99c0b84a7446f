// One node of a test: a peer listener on a server of its own.
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { onTestFinished } from "vitest";
import { type PeerListener, type PeerListenerOptions, peerListener } from "../../src/peer-listener.ts";
import { testKey } from "./records.ts";

export interface TestNode {
  listener: PeerListener;
  server: Server;
  address: { host: string; port: number };
  /** Cuts everything, as a kill does. */
  kill(): void;
}

/** Starts a node named `owner` with the key of the tests, unless told otherwise. */
export async function startNode(options: Partial<PeerListenerOptions> = {}): Promise<TestNode> {
  const listener = peerListener({ self: "owner", keys: [testKey], ...options });
  const server = createServer();
  listener.attach(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const kill = () => {
    listener.destroy();
    server.close();
    server.closeAllConnections();
  };
  onTestFinished(kill);
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return { listener, server, address: { host: "127.0.0.1", port }, kill };
}
