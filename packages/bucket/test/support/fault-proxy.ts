/** An HTTP proxy that does to one request what networks do. */
import { createServer, type IncomingMessage, type ServerResponse, request as startRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** What happens to a request; "pass" is none. */
export type Fault =
  | { kind: "pass" }
  /** The store gets it, the client gets a reset instead of the answer. */
  | { kind: "lose-answer" }
  /** The store gets it, the client never gets an answer. */
  | { kind: "hang" }
  /** The store gets nothing yet: it gets the request when `release` is called; the client gets a reset at once. */
  | { kind: "deliver-late"; released: Promise<void> }
  /** The store gets nothing, the client gets this answer. */
  | { kind: "answer"; status: number; code: string };

export interface FaultProxy {
  endpoint: string;
  /** Every request that came, as "PUT /path". */
  seen: string[];
  /** Resolves when requests that were delivered late have been answered by the store. */
  late: Promise<unknown>[];
}

/** Starts a proxy before a server; `choose` says what happens to each request. */
export async function startFaultProxy(
  target: { endpoint: string },
  choose: (method: string, count: number) => Fault,
): Promise<FaultProxy> {
  const seen: string[] = [];
  const late: Promise<unknown>[] = [];
  const server = createServer((request, response) => {
    const method = request.method ?? "";
    seen.push(`${method} ${request.url}`);
    const count = seen.filter((line) => line.startsWith(method)).length;
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const deliver = () => forward(target, request, Buffer.concat(chunks));
      // A store that went away meanwhile, as at the end of a test, is a reset for the client.
      apply(choose(method, count), response, deliver, late).catch(() => response.destroy());
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });
  return { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen, late };
}

interface Forwarded {
  status: number;
  headers: NodeJS.Dict<string | string[]>;
  body: Buffer;
}

async function apply(
  fault: Fault,
  response: ServerResponse,
  deliver: () => Promise<Forwarded>,
  late: Promise<unknown>[],
): Promise<void> {
  switch (fault.kind) {
    case "pass": {
      const { status, headers, body } = await deliver();
      response.writeHead(status, headers).end(body);
      return;
    }
    case "lose-answer":
      await deliver();
      response.destroy();
      return;
    case "hang":
      await deliver();
      return;
    case "deliver-late":
      late.push(fault.released.then(deliver));
      response.destroy();
      return;
    case "answer":
      response
        .writeHead(fault.status, { "content-type": "application/xml" })
        .end(`<?xml version="1.0"?><Error><Code>${fault.code}</Code><Message>made up</Message></Error>`);
  }
}

/** Passes a request on with its headers as they are, so that its signature stays right. */
function forward(target: { endpoint: string }, request: IncomingMessage, body: Buffer): Promise<Forwarded> {
  return new Promise((done, failed) => {
    const { hostname, port } = new URL(target.endpoint);
    const onward = startRequest(
      { hostname, port, method: request.method, path: request.url, headers: request.headers },
      (answer) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => chunks.push(chunk));
        answer.on("end", () => {
          const { "transfer-encoding": _, connection: __, ...headers } = answer.headers;
          done({ status: answer.statusCode ?? 0, headers, body: Buffer.concat(chunks) });
        });
      },
    );
    onward.on("error", failed);
    onward.end(body);
  });
}
