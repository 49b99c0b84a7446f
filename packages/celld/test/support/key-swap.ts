// A store as one node sees it that has got hold of another fleet's key: everything is as it is, but for the object with the key.
import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  request as send,
} from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream/promises";

/** An endpoint before another one that answers for the fleet's key with `key`. */
export class KeySwap implements AsyncDisposable {
  readonly endpoint: string;
  readonly #server: Server;

  private constructor(server: Server, host: string) {
    this.#server = server;
    this.endpoint = `http://${host}:${(server.address() as AddressInfo).port}`;
  }

  static async open(store: string, { host, key }: { host: string; key: string }): Promise<KeySwap> {
    const server = createServer((request, response) => {
      const isKey = request.method === "GET" && /\/fleet\/peer-auth\.json(\?|$)/.test(request.url ?? "");
      if (isKey) response.writeHead(200, { etag: '"swapped"', "content-type": "application/json" }).end(key);
      else forward(store, request, response).catch(() => response.destroy());
    });
    server.listen(0, host);
    await once(server, "listening");
    return new KeySwap(server, host);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** With the head as it is: the signature of a request covers its host. */
async function forward(store: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method, url, rawHeaders } = request;
  const forwarded = send(new URL(url ?? "/", store), { method, setHost: false, headers: rawHeaders });
  const answered = once(forwarded, "response") as Promise<[IncomingMessage]>;
  const [[answer]] = await Promise.all([answered, pipeline(request, forwarded)]);
  response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
  await pipeline(answer, response);
}
