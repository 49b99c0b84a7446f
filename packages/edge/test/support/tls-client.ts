// A TLS client of bare bytes: it sends what a test says, keeps what comes, and knows how its connection ended.
import { once } from "node:events";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { until } from "../../../../tools/test-support/until.ts";
import { TestError } from "./test-error.ts";

/** An answer, parsed. */
export interface ParsedAnswer {
  status: number;
  /** Names in lower case. */
  fields: Record<string, string>;
  body: string;
}

/** One connection. */
export class TlsClient {
  readonly socket: TLSSocket;
  /** Everything received, one character a byte. */
  text = "";
  isClosed = false;
  /** Why the connection broke, for example `ECONNRESET`. */
  error: string | undefined;

  private constructor(socket: TLSSocket) {
    this.socket = socket;
    socket.on("data", (chunk: Buffer) => {
      this.text += chunk.toString("latin1");
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      this.error = error.code ?? error.message;
    });
    socket.on("close", () => {
      this.isClosed = true;
    });
  }

  /** @throws the handshake's own error */
  static async dial(port: number, options: ConnectionOptions): Promise<TlsClient> {
    return TlsClient.over(connect({ host: "127.0.0.1", port, ...options }));
  }

  /** Over a socket of the test's own. @throws the handshake's own error */
  static async over(socket: TLSSocket): Promise<TlsClient> {
    await once(socket, "secureConnect");
    return new TlsClient(socket);
  }

  send(bytes: string | Uint8Array): this {
    this.socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
    return this;
  }

  /** Waits for so many whole answers. */
  answers(count = 1): Promise<ParsedAnswer[]> {
    return until(`${count} answers`, () => {
      const answers = parseAnswers(this.text);
      if (answers.length >= count) return answers;
      if (this.isClosed) throw new TestError(`closed (${this.error}) after ${JSON.stringify(this.text)}`);
      return undefined;
    });
  }

  /** Waits until the server has closed; what came until then. */
  async closed(): Promise<ParsedAnswer[]> {
    await until("end of the connection", () => this.isClosed);
    return parseAnswers(this.text);
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }
}

/** The whole answers at the begin of a text; bodies by length or in chunks. */
function parseAnswers(text: string): ParsedAnswer[] {
  const answers: ParsedAnswer[] = [];
  let rest = text;
  for (;;) {
    const headEnd = rest.indexOf("\r\n\r\n");
    if (headEnd < 0) return answers;
    const [start = "", ...lines] = rest.slice(0, headEnd).split("\r\n");
    const fields = Object.fromEntries(
      lines.map((line) => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
    );
    const status = Number(start.split(" ")[1]);
    const after = rest.slice(headEnd + 4);
    const found =
      fields["transfer-encoding"] === "chunked"
        ? dechunk(after)
        : sized(after, Number(fields["content-length"] ?? 0));
    if (found === undefined) return answers;
    answers.push({ status, fields, body: found.body });
    rest = found.rest;
  }
}

function sized(text: string, length: number): { body: string; rest: string } | undefined {
  return text.length < length ? undefined : { body: text.slice(0, length), rest: text.slice(length) };
}

function dechunk(text: string): { body: string; rest: string } | undefined {
  let [body, rest] = ["", text];
  for (;;) {
    const match = /^([0-9a-f]+)\r\n/i.exec(rest);
    if (match === null) return undefined;
    const size = Number.parseInt(match[1] ?? "", 16);
    const end = match[0].length + size;
    if (rest.length < end + 2) return undefined;
    body += rest.slice(match[0].length, end);
    rest = rest.slice(end + 2);
    if (size === 0) return { body, rest };
  }
}
