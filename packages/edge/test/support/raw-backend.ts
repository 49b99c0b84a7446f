// A backend on bare sockets: it keeps every byte that it was sent, reads requests by the strictest reading of RFC 9112, and
// answers as the test says.
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { type BackendOrigin, parseBackendOrigin } from "../../src/core/backend-origin.ts";
import { TestError } from "./test-error.ts";

/** One request, as it stood on the wire. */
export interface ReceivedRequest {
  line: string;
  /** Names in lower case, and values, in order. */
  fields: [string, string][];
  body: Buffer;
  /** Which connection it came on, from 0. */
  connection: number;
}

/** Answers a request by writing to the socket. */
export type Answer = (request: ReceivedRequest, socket: Socket) => void;

export const okAnswer =
  'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"ok":true}';

/** Where nobody listens: a port that no test is given, so that none takes it meanwhile. */
export const nobody = parseBackendOrigin("http://127.0.0.1:1") as BackendOrigin;

/** A recording backend. */
export class RawBackend {
  readonly requests: ReceivedRequest[] = [];
  /** Bytes that were no request, by any strict reading. */
  readonly problems: string[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #connectionCount = 0;
  answer: Answer;
  /** Where it is; stays when it is closed. */
  origin = nobody;

  private constructor(answer: Answer) {
    this.answer = answer;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  static async open(answer: Answer = (_, socket) => void socket.write(okAnswer)): Promise<RawBackend> {
    const backend = new RawBackend(answer);
    await new Promise<void>((resolve) => backend.#server.listen(0, "127.0.0.1", resolve));
    const { port } = backend.#server.address() as AddressInfo;
    backend.origin = parseBackendOrigin(`http://127.0.0.1:${port}`) as BackendOrigin;
    return backend;
  }

  /** Connections ever, and those open. */
  get connections(): { ever: number; open: number } {
    return { ever: this.#connectionCount, open: this.#sockets.size };
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #accept(socket: Socket): void {
    const connection = this.#connectionCount;
    this.#connectionCount += 1;
    this.#sockets.add(socket);
    let rest: Buffer = Buffer.alloc(0);
    socket.on("error", () => undefined);
    socket.once("close", () => {
      this.#sockets.delete(socket);
      if (rest.length > 0) this.problems.push(`no whole request: ${JSON.stringify(rest.toString("latin1"))}`);
    });
    socket.on("data", (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      try {
        for (;;) {
          const parsed = parseRequest(rest, connection);
          if (parsed === undefined) return;
          rest = parsed.rest;
          this.requests.push(parsed.request);
          this.answer(parsed.request, socket);
        }
      } catch (error) {
        this.problems.push(`${(error as Error).message} in ${JSON.stringify(rest.toString("latin1"))}`);
        rest = Buffer.alloc(0);
        socket.destroy();
      }
    });
  }
}

/** undefined: not all of it is there yet. Throws on anything but one plain reading. */
function parseRequest(
  bytes: Buffer,
  connection: number,
): { request: ReceivedRequest; rest: Buffer } | undefined {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd < 0) return undefined;
  const [line = "", ...lines] = bytes.subarray(0, headEnd).toString("latin1").split("\r\n");
  if (!/^(GET|POST|DELETE) \/v1\/[A-Za-z0-9._:/-]+ HTTP\/1\.1$/.test(line))
    throw new TestError(`request line ${line}`);
  const fields = lines.map((text): [string, string] => {
    const match = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\t\x20-\x7e\x80-\xff]*)$/.exec(text);
    if (match === null) throw new TestError(`field ${JSON.stringify(text)}`);
    return [(match[1] ?? "").toLowerCase(), match[2] ?? ""];
  });
  const valuesOf = (name: string) => fields.flatMap(([each, value]) => (each === name ? [value] : []));
  if (valuesOf("host").length !== 1) throw new TestError("not one Host");
  if (valuesOf("transfer-encoding").length > 0) throw new TestError("Transfer-Encoding");
  const lengths = valuesOf("content-length");
  if (lengths.length > 1 || lengths.some((length) => !/^(0|[1-9]\d*)$/.test(length)))
    throw new TestError("Content-Length");
  const end = headEnd + 4 + Number(lengths[0] ?? 0);
  if (bytes.length < end) return undefined;
  return {
    request: { line, fields, body: bytes.subarray(headEnd + 4, end), connection },
    rest: bytes.subarray(end),
  };
}
