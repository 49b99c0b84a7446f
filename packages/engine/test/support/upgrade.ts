// A WebSocket handshake with a request line of the test's own, which no client library takes.
import { type IncomingHttpHeaders, request } from "node:http";
import type { Duplex } from "node:stream";

/** What answered a handshake with a 101. */
export interface Upgraded {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Sends a short text and answers the text of the next frame. */
  echo(text: string): Promise<string>;
}

/** Shakes hands over a unix socket. */
export async function upgrade(
  socketPath: string | undefined,
  target: string,
  headers: Readonly<Record<string, string>>,
): Promise<Upgraded> {
  if (socketPath === undefined) throw new TypeError("the engine serves nothing");
  const { promise, resolve, reject } = Promise.withResolvers<Upgraded>();
  const asked = request({
    socketPath,
    path: target,
    agent: false,
    signal: AbortSignal.timeout(60_000),
    headers: {
      connection: "upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      ...headers,
    },
  });
  asked.once("error", reject);
  asked.once("response", ({ statusCode }) => reject(new TypeError(`answered ${statusCode}`)));
  asked.once("upgrade", (response, socket: Duplex) => {
    const { statusCode: status = 0, headers } = response;
    resolve({ status, headers, echo: (text) => echo(socket, text) });
  });
  asked.end();
  return promise;
}

async function echo(socket: Duplex, text: string): Promise<string> {
  // A masked frame, the mask being zero; the answer fits into one chunk.
  socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)]));
  const frame = await new Promise<Buffer>((resolve) => socket.once("data", resolve));
  socket.destroy();
  return frame.subarray(2).toString();
}
