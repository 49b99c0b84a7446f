// A TCP client that keeps every byte it is sent and knows how its connection ended.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { until } from "../../../../tools/test-support/until.ts";

/** One connection, half-open: the peer's FIN does not end our sending. */
export class RawClient {
  readonly socket: Socket;
  /** Everything received, one character a byte. */
  text = "";
  /** The peer's FIN came. */
  ended = false;
  /** Both directions are done. */
  closed = false;
  /** Why the connection broke, for example `ECONNRESET`. */
  error: string | undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk: Buffer) => {
      this.text += chunk.toString("latin1");
    });
    socket.on("end", () => {
      this.ended = true;
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      this.error = error.code ?? error.message;
    });
    socket.on("close", () => {
      this.closed = true;
    });
  }

  static async dial(port: number): Promise<RawClient> {
    const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true, noDelay: true });
    await once(socket, "connect");
    return new RawClient(socket);
  }

  send(bytes: string | Uint8Array): this {
    this.socket.write(bytes);
    return this;
  }

  /** Waits until `part` has come `count` times; answers everything received so far. */
  async receive(part: string, count = 1): Promise<string> {
    await until(`${count} x ${JSON.stringify(part)} in ${JSON.stringify(this.text)}`, () => {
      if (this.error !== undefined) throw new Error(`${this.error} after ${JSON.stringify(this.text)}`);
      return this.text.split(part).length > count;
    });
    return this.text;
  }

  /** Waits for the peer's FIN; answers everything received. Fails on a reset. */
  async finish(boundMs = 30_000): Promise<string> {
    await until("FIN", () => this.ended || this.closed, boundMs);
    if (this.error !== undefined) throw new Error(`${this.error} after ${JSON.stringify(this.text)}`);
    return this.text;
  }
}

/** A received answer, parsed. */
export interface ParsedAnswer {
  status: number;
  fields: Record<string, string>;
  body: string;
}

/** The answers in a received text, which must hold whole ones only; bodies by length or in chunks. */
export function parseAnswers(text: string): ParsedAnswer[] {
  const answers: ParsedAnswer[] = [];
  let rest = text;
  while (rest !== "") {
    const headEnd = rest.indexOf("\r\n\r\n");
    const [start = "", ...lines] = rest.slice(0, headEnd).split("\r\n");
    const fields = Object.fromEntries(
      lines.map((line) => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
    );
    rest = rest.slice(headEnd + 4);
    const length = Number(fields["content-length"]);
    let body = "";
    if (fields["transfer-encoding"] === "chunked") [body, rest] = dechunk(rest);
    else if (rest.length < length)
      throw new Error(`an answer's body is cut: ${rest.length} of ${length} bytes`);
    else [body, rest] = [rest.slice(0, length), rest.slice(length)];
    answers.push({ status: Number(start.split(" ")[1]), fields, body });
  }
  return answers;
}

function dechunk(text: string): [body: string, rest: string] {
  let [body, rest] = ["", text];
  for (;;) {
    const lineEnd = rest.indexOf("\r\n");
    const size = Number.parseInt(rest.slice(0, lineEnd), 16);
    const end = lineEnd + 2 + size + 2;
    if (lineEnd < 0 || Number.isNaN(size) || rest.length < end) throw new Error("a chunked body is cut");
    body += rest.slice(lineEnd + 2, lineEnd + 2 + size);
    rest = rest.slice(end);
    if (size === 0) return [body, rest];
  }
}
