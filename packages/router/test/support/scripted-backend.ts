// A dispatcher on bare sockets: it keeps what it was sent, and answers as the test says. Every connection is one request.
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

/** One request, as it stood on the wire. */
export interface BackendRequest {
  readonly method: string;
  readonly path: string;
  /** Names as they came, in order. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
}

/** The bytes of an answer; undefined: the connection is closed without one; `hang`: nothing happens. */
export type Answerer = (
  request: BackendRequest,
  socket: Socket,
) => Promise<string | Buffer | "hang" | undefined> | string | Buffer | "hang" | undefined;

/** An answer with a length, as dispatchers write it. */
export function jsonAnswer(status: number, body: unknown): string {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return `HTTP/1.1 ${status} OK\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`;
}

/** Healthy, and every execution runs. */
export const willing: Answerer = ({ method, path }) =>
  path === "/v1/health"
    ? jsonAnswer(200, { ok: true, kvm: true })
    : jsonAnswer(method === "POST" ? 202 : 200, { requestId: "x", phase: "Running" });

/** A recording dispatcher. */
export class ScriptedBackend implements AsyncDisposable {
  readonly requests: BackendRequest[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  answer: Answerer;
  /** `http://127.0.0.1:PORT`; stays when it is closed. */
  origin = "";

  private constructor(answer: Answerer) {
    this.answer = answer;
    this.#server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
  }

  static async open(answer: Answerer = willing): Promise<ScriptedBackend> {
    const backend = new ScriptedBackend(answer);
    await new Promise<void>((resolve) => backend.#server.listen(0, "127.0.0.1", resolve));
    backend.origin = `http://127.0.0.1:${(backend.#server.address() as AddressInfo).port}`;
    return backend;
  }

  get port(): number {
    return Number(new URL(this.origin).port);
  }

  /** `METHOD path` of all requests so far. */
  get calls(): string[] {
    return this.requests.map(({ method, path }) => `${method} ${path}`);
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
    this.#sockets.add(socket);
    let bytes: Buffer = Buffer.alloc(0);
    socket.on("error", () => undefined);
    socket.once("close", () => this.#sockets.delete(socket));
    socket.on("data", async (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      const request = parseRequest(bytes);
      if (request === undefined) return;
      bytes = Buffer.alloc(0);
      this.requests.push(request);
      const answer = await this.answer(request, socket);
      if (answer === "hang") return;
      if (answer === undefined) socket.destroy();
      else socket.end(answer);
    });
  }
}

/** undefined: not all of it is there. */
function parseRequest(bytes: Buffer): BackendRequest | undefined {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd === -1) return undefined;
  const [line = "", ...lines] = bytes.subarray(0, headEnd).toString("latin1").split("\r\n");
  const [method = "", path = ""] = line.split(" ");
  const fields = lines.map((text): [string, string] => {
    const colon = text.indexOf(": ");
    return [text.slice(0, colon), text.slice(colon + 2)];
  });
  const length = Number(fields.find(([name]) => name === "Content-Length")?.[1] ?? 0);
  if (bytes.length < headEnd + 4 + length) return undefined;
  return { method, path, fields, body: bytes.subarray(headEnd + 4, headEnd + 4 + length) };
}
