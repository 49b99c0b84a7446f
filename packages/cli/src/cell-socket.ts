// A WebSocket to a cell: the `ws` client over a connection that is spliced to the tunnel, so that it sees the bytes of the
// cell's own handshake and frames.
import { createServer, type IncomingMessage } from "node:http";
import { type Duplex, duplexPair, pipeline } from "node:stream";
import type { CellAddress, PeerClient } from "@cellkit/peer";
import { WebSocket } from "ws";

/** Longest message that is taken; a longer one ends the socket with 1009. */
const maxMessageBytes = 64 * 1024 * 1024;

/** How to open one. */
export interface CellSocketOptions {
  readonly headers: Headers;
  readonly signal: AbortSignal;
  /** Hears why there was no answer to the handshake; the socket itself only knows that it ended. */
  readonly onFailure: (error: unknown) => void;
}

/** Opens a WebSocket to a cell; it is not open yet when it is returned. @param url what the cell sees */
export function openCellSocket(
  client: PeerClient,
  cell: CellAddress,
  url: URL,
  { headers, signal, onFailure }: CellSocketOptions,
): WebSocket {
  const protocols = (headers.get("sec-websocket-protocol") ?? "").split(",").map((each) => each.trim());
  const [near, far] = duplexPair();
  const server = createServer().on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // Its other end is the client here, which tells how it ended.
    socket.on("error", () => {});
    connect(client, cell, withHandshake(url, headers, request, signal), socket, head).catch(
      (error: unknown) => {
        onFailure(error);
        socket.destroy();
      },
    );
  });
  server.emit("connection", far);
  return new WebSocket(
    "ws://cell/",
    protocols.filter((each) => each !== ""),
    { createConnection: () => near, perMessageDeflate: false, maxPayload: maxMessageBytes },
  );
}

/** The client's handshake under the cell's URL, with the headers that the user gave. */
function withHandshake(url: URL, given: Headers, { headers }: IncomingMessage, signal: AbortSignal): Request {
  const all = new Headers(given);
  for (const [name, value] of Object.entries(headers))
    if (name.startsWith("sec-websocket-") && typeof value === "string") all.set(name, value);
  return new Request(url, { headers: all, signal });
}

async function connect(
  client: PeerClient,
  cell: CellAddress,
  request: Request,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  const answer = await client.connect(cell, request);
  if (answer.kind === "response") {
    const { response } = answer;
    const body = Buffer.from(await response.arrayBuffer());
    const lines = [
      `HTTP/1.1 ${response.status} Refused`,
      `content-length: ${body.length}`,
      "connection: close",
    ];
    socket.end(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`), body]));
    return;
  }
  const lines = ["HTTP/1.1 101 Switching Protocols", "upgrade: websocket", "connection: Upgrade"];
  for (const [name, value] of answer.headers) lines.push(`${name}: ${value}`);
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  if (head.length > 0) answer.socket.write(head);
  // The client on this side tells how it ended; a broken end of one side ends the other.
  pipeline(socket, answer.socket, () => {});
  pipeline(answer.socket, socket, () => {});
}
