// A proxy in front of a store that can keep writes back and deliver them later, whatever became of their sender.
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A write that was kept back. */
interface HeldWrite {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  /** Sends it to the store and answers the store's status. */
  deliver(): Promise<number>;
}

/** The proxy. */
export interface LateWrites extends AsyncDisposable {
  readonly endpoint: string;
  /** Writes kept back so far. */
  readonly held: readonly HeldWrite[];
  /** From here on, PUTs whose path matches are kept back. */
  hold(path: RegExp): void;
}

/** Starts a proxy for the store at `endpoint`; nothing is kept back yet. */
export async function proxyLateWrites(endpoint: string): Promise<LateWrites> {
  const { hostname, port } = new URL(endpoint);
  const held: HeldWrite[] = [];
  let pattern: RegExp | undefined;
  const forward = (message: IncomingMessage, body: Buffer): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const { method, url: path, headers } = message;
      // The host header is part of the signature and stays as it was.
      const sent = request({ host: hostname, port, method, path, headers, agent: false }, resolve);
      sent.once("error", reject);
      sent.end(body);
    });
  const server = createServer((message, answer: ServerResponse) => {
    const chunks: Buffer[] = [];
    message.on("data", (chunk: Buffer) => chunks.push(chunk));
    message.on("error", () => answer.destroy());
    message.on("end", () => {
      const body = Buffer.concat(chunks);
      if (message.method === "PUT" && pattern?.test(message.url ?? "") === true) {
        held.push({
          path: message.url ?? "",
          headers: message.headers,
          deliver: async () => {
            const response = await forward(message, body);
            response.resume();
            return response.statusCode ?? 0;
          },
        });
        return;
      }
      forward(message, body).then(
        (response) => {
          answer.writeHead(response.statusCode ?? 502, response.rawHeaders);
          response.pipe(answer);
        },
        () => answer.destroy(),
      );
    });
  });
  server.on("clientError", (_, socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    held,
    hold: (path) => {
      pattern = path;
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
