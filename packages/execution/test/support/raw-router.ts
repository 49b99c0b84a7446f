// Routers of the tests: they read whole requests from the socket and answer with exactly the bytes that a test says.
import { createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";

/** A request as it came, head and body apart. */
interface Received {
  readonly line: string;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** What a router does with a request: the bytes to write before it closes, or something of its own with the socket. */
export type Script = (
  request: Received,
  index: number,
  socket: Socket,
) => string | undefined | Promise<string | undefined>;

export interface RawRouter extends AsyncDisposable {
  readonly url: string;
  readonly received: readonly Received[];
  /** Connections that came, with or without a request. */
  readonly connections: () => number;
  /** Those that are open: none once a client has read its answer. */
  readonly open: () => number;
}

/** A JSON answer as routers give them: always `OK`, always closing. */
export function answer(status: number, body: unknown): string {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const head = `HTTP/1.1 ${status} OK\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}`;
  return `${head}\r\nConnection: close\r\n\r\n${text}`;
}

export const refusal = (status: number, error: string) => answer(status, { error });

/** Listens on a free port. Each connection has one request; a script's answer is written and the connection closed. */
export async function rawRouter(
  script: Script,
  tls?: TlsOptions,
  onConnection: (socket: Socket) => void = () => undefined,
): Promise<RawRouter> {
  const received: Received[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const serve = (socket: Socket) => {
    sockets.add(socket.on("error", () => socket.destroy()).on("close", () => sockets.delete(socket)));
    let text = "";
    socket.setEncoding("latin1").on("data", async (chunk: string) => {
      const before = requestIn(text);
      text += chunk;
      const request = requestIn(text);
      if (request === undefined || before !== undefined) return;
      const bytes = await script(request, received.push(request) - 1, socket);
      if (bytes !== undefined) socket.end(bytes);
    });
  };
  const server: Server = tls === undefined ? createServer(serve) : createTlsServer(tls, serve);
  server.on("connection", (socket) => {
    connections++;
    onConnection(socket);
  });
  server.on("tlsClientError", () => undefined);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`,
    received,
    connections: () => connections,
    open: () => sockets.size,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The request in these characters, once it is whole. */
function requestIn(text: string): Received | undefined {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const [line = "", ...lines] = text.slice(0, end).split("\r\n");
  const headers = new Map(
    lines.map((header) => {
      const colon = header.indexOf(":");
      return [header.slice(0, colon).toLowerCase(), header.slice(colon + 1).trim()] as const;
    }),
  );
  const body = text.slice(end + 4);
  if (body.length < Number(headers.get("content-length") ?? 0)) return undefined;
  return { line, headers, body: Buffer.from(body, "latin1").toString("utf8") };
}
