/** Requests by raw TCP, signed by the code under test (whose signatures sigv4.test.ts holds against AWS's examples). */
import { createHash } from "node:crypto";
import { connect } from "node:net";
import { signatureOf, signingKey } from "../../src/core/sigv4.ts";
import { credentials } from "./server.ts";

export interface RawRequest {
  method: string;
  /** As it goes on the wire. */
  target: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  /** @default the hash of the body */
  payload?: string;
  secretAccessKey?: string;
  accessKeyId?: string;
  /** How far the client's clock is ahead when it signs. @default 0 */
  aheadMs?: number;
  region?: string;
  /** Headers sent but not signed. */
  unsigned?: Record<string, string>;
}

export interface RawAnswer {
  status: number;
  head: string;
  body: string;
  /** The `<Code>` of an error. */
  code: string | undefined;
}

function timestampOf(timeMs: number): string {
  return `${new Date(timeMs).toISOString().replace(/[-:]/g, "").slice(0, 15)}Z`;
}

/** The head of a signed request, and what the chunks of its body continue from. */
export function signedHead(
  server: { endpoint: string },
  request: RawRequest,
): { head: string; seed: string; key: Uint8Array; timestamp: string } {
  const timestamp = timestampOf(Date.now() + (request.aheadMs ?? 0));
  const region = request.region ?? "us-east-1";
  const payload =
    request.payload ??
    createHash("sha256")
      .update(request.body ?? "")
      .digest("hex");
  const length =
    request.body === undefined ? {} : { "content-length": String(Buffer.byteLength(request.body)) };
  const headers: Record<string, string> = {
    ...length,
    ...request.headers,
    host: new URL(server.endpoint).host,
    "x-amz-content-sha256": payload,
    "x-amz-date": timestamp,
  };
  const [path = "", query = ""] = request.target.split("?");
  const decode = (text: string) =>
    text.replace(/%([0-9a-fA-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  const names = Object.keys(headers).sort();
  const key = signingKey(
    request.secretAccessKey ?? credentials.secretAccessKey,
    timestamp.slice(0, 8),
    region,
  );
  const seed = signatureOf(key, {
    method: request.method,
    path: decode(path),
    query: query
      .split("&")
      .filter((field) => field !== "")
      .map((field) => {
        const [name = "", value = ""] = field.split("=");
        return [decode(name), decode(value)] as const;
      }),
    headers: names.map((name) => [name, headers[name] ?? ""]),
    payload,
    timestamp,
    region,
  });
  const scope = `${timestamp.slice(0, 8)}/${region}/s3/aws4_request`;
  const authorization = `AWS4-HMAC-SHA256 Credential=${request.accessKeyId ?? credentials.accessKeyId}/${scope},SignedHeaders=${names.join(";")},Signature=${seed}`;
  const lines = Object.entries({ ...headers, authorization, ...request.unsigned });
  const head = `${request.method} ${request.target} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
  return { head, seed, key, timestamp };
}

/** Sends one signed request on a connection of its own. */
export function sendSigned(server: { endpoint: string }, request: RawRequest): Promise<RawAnswer> {
  const { head } = signedHead(server, { ...request, headers: { connection: "close", ...request.headers } });
  return sendRaw(server, [head, request.body ?? ""]);
}

/** Sends pieces as they are, closes the writing side if asked, and reads the answer until the server closes. */
export function sendRaw(
  server: { endpoint: string },
  pieces: readonly (string | Uint8Array)[],
  options: { end?: boolean } = {},
): Promise<RawAnswer> {
  const { hostname, port } = new URL(server.endpoint);
  return new Promise((done, failed) => {
    const socket = connect(Number(port), hostname);
    const received: Buffer[] = [];
    socket.setTimeout(30_000, () => socket.destroy(new TypeError("no answer, or no end of it, within 30 s")));
    // Who sends on after the answer may be reset then: the answer is there.
    socket.on("error", (error) => received.length === 0 && failed(error));
    socket.on("data", (bytes) => received.push(bytes));
    socket.on("close", () => done(parseAnswer(Buffer.concat(received).toString("latin1"))));
    socket.on("connect", () => {
      for (const piece of pieces) if (piece.length > 0) socket.write(piece);
      if (options.end === true) socket.end();
    });
  });
}

export function parseAnswer(text: string): RawAnswer {
  const at = text.indexOf("\r\n\r\n");
  const head = text.slice(0, at);
  const body = text.slice(at + 4);
  return {
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0),
    head,
    body,
    code: /<Code>([^<]*)<\/Code>/.exec(body)?.[1],
  };
}
