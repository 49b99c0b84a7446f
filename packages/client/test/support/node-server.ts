// Nodes of a fleet for tests: real servers on loopback that can drain, break off or say anything byte by byte.
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";

/** The exact answer of a draining node. */
export const refusal =
  "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n" +
  'connection: close\r\ncontent-length: 28\r\n\r\n{"ok":false,"draining":true}';

/** One request as a node saw it. */
interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
  readonly bodyBytes: number;
  /** Local port of the client's connection: tells connections apart. */
  readonly connection: number;
}

/** A node that answers what `respond` does with each complete request, or refuses while `draining`. */
export interface TestNode {
  readonly url: string;
  readonly port: number;
  /** Requests that reached the handler. */
  readonly seen: Seen[];
  /** Requests refused by the drain. */
  refusedCount: number;
  probeCount: number;
  draining: boolean;
  /** Health answer; undefined follows `draining`. */
  healthStatus: number | undefined;
  respond: (seen: Seen, response: ServerResponse, request: IncomingMessage) => unknown;
  readonly sockets: Set<Socket>;
  [Symbol.asyncDispose](): Promise<void>;
}

async function listen(server: Server | ReturnType<typeof createTcpServer>, port = 0): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return (server.address() as AddressInfo).port;
}

function track(server: Server | ReturnType<typeof createTcpServer>): Set<Socket> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
  });
  return sockets;
}

async function shut(
  server: Server | ReturnType<typeof createTcpServer>,
  sockets: Set<Socket>,
): Promise<void> {
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
}

/** Starts a node. Its default answer is 200 with its name. */
export async function startNode(name = "node", port = 0): Promise<TestNode> {
  const handle: RequestListener = (request, response) => {
    if (request.url === "/__celld/health") {
      node.probeCount += 1;
      const status = node.healthStatus ?? (node.draining ? 503 : 200);
      response
        .writeHead(status, { "content-type": "application/json" })
        .end(JSON.stringify({ ok: status === 200 }));
      return;
    }
    if (node.draining) {
      node.refusedCount += 1;
      request.resume();
      request.socket.write(refusal);
      request.socket.end();
      return;
    }
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("error", () => undefined);
    request.on("end", () => {
      const body = Buffer.concat(chunks);
      const seen = {
        method: request.method ?? "",
        url: request.url ?? "",
        headers: request.headers,
        body: body.length < 1_000_000 ? body.toString() : "",
        bodyBytes: body.length,
        connection: request.socket.remotePort ?? 0,
      };
      node.seen.push(seen);
      node.respond(seen, response, request);
    });
  };
  const server = createServer({ keepAliveTimeout: 30_000 }, handle);
  const sockets = track(server);
  const actual = await listen(server, port);
  const node: TestNode = {
    url: `http://127.0.0.1:${actual}`,
    port: actual,
    seen: [],
    refusedCount: 0,
    probeCount: 0,
    draining: false,
    healthStatus: undefined,
    respond: (_seen, response) => void response.end(name),
    sockets,
    [Symbol.asyncDispose]: () => shut(server, sockets),
  };
  return node;
}

/** A TCP server that is handed each connection's socket with what it sent so far, once per request head. */
export interface RawNode {
  readonly url: string;
  readonly port: number;
  readonly sockets: Set<Socket>;
  connectionCount: number;
  requestCount: number;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a node that speaks raw bytes: `onRequest` is called when a request head is complete. */
export async function startRawNode(
  onRequest: (socket: Socket, head: string, count: number) => void,
): Promise<RawNode> {
  const server = createTcpServer((socket) => {
    node.connectionCount += 1;
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      const end = text.indexOf("\r\n\r\n");
      if (end < 0) return;
      const head = text.slice(0, end + 4);
      text = "";
      node.requestCount += 1;
      onRequest(socket, head, node.requestCount);
    });
  });
  const sockets = track(server);
  const port = await listen(server);
  const node: RawNode = {
    url: `http://127.0.0.1:${port}`,
    port,
    sockets,
    connectionCount: 0,
    requestCount: 0,
    [Symbol.asyncDispose]: () => shut(server, sockets),
  };
  return node;
}

/** Waits until `check` is true, for at most `timeoutMs`. */
export async function until(check: () => boolean, what: string, timeoutMs = 30_000): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  while (!check()) {
    if (performance.now() > endMs) throw new Error(`${what}: not within ${timeoutMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
