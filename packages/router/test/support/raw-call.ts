// Requests as bytes, and answers as bytes: what an HTTP client would correct by itself stays as it is.
import { connect } from "node:net";

/** A whole answer. */
export interface RawAnswer {
  readonly status: number;
  readonly reason: string;
  /** Names as they came, in order. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  /** All of it. */
  readonly text: string;
}

/** How a request is sent. */
export interface RawCallOptions {
  /** End our side behind the request. */
  readonly halfClose?: boolean;
  /** @default "127.0.0.1" */
  readonly host?: string;
  /** Send in these pieces, each in a packet of its own. */
  readonly pieces?: readonly (string | Buffer)[];
}

/** Sends bytes and reads until the router closes. undefined: it closed without a byte. */
export function rawCall(
  port: number,
  request: string | Buffer,
  { halfClose = false, host = "127.0.0.1", pieces = [] }: RawCallOptions = {},
): Promise<RawAnswer | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host, noDelay: true, allowHalfOpen: true });
    const chunks: Buffer[] = [];
    const finish = () => {
      socket.destroy();
      const text = Buffer.concat(chunks).toString("latin1");
      resolve(text === "" ? undefined : parseAnswer(text));
    };
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("end", finish);
    socket.on("error", (error: NodeJS.ErrnoException) => {
      // A connection that was ended without an answer may be reset.
      if (error.code === "ECONNRESET" || error.code === "EPIPE") finish();
      else reject(error);
    });
    socket.on("connect", async () => {
      socket.write(typeof request === "string" ? Buffer.from(request, "latin1") : request);
      for (const piece of pieces) {
        await new Promise((next) => setTimeout(next, 1));
        socket.write(piece);
      }
      if (halfClose) socket.end();
    });
  });
}

function parseAnswer(text: string): RawAnswer {
  const headEnd = text.indexOf("\r\n\r\n");
  const [line = "", ...lines] = text.slice(0, headEnd).split("\r\n");
  const [, status, reason = ""] = /^HTTP\/1\.1 (\d{3}) ?(.*)$/.exec(line) ?? [];
  const fields = lines.map((each): [string, string] => {
    const colon = each.indexOf(": ");
    return [each.slice(0, colon), each.slice(colon + 2)];
  });
  return { status: Number(status), reason, fields, body: text.slice(headEnd + 4), text };
}
