// Calls to dispatchers as they go over the wire (execution API, section 4.5). Old dispatchers read some names with exact case.
import { readAnswerHead } from "./answer-head.ts";

/** One call. */
export interface BackendCall {
  readonly method: "GET" | "POST";
  readonly path: string;
  /** What `Host` says: the whole origin, or `dispatcher` for capabilities. */
  readonly host: string;
  /** Exact bytes; undefined for a GET. An empty one is sent with its length. */
  readonly body?: Uint8Array | undefined;
  /** Leave the connection open behind the answer. @default false */
  readonly keepAlive?: boolean;
}

/** The bytes of a call. */
export function encodeCall(call: BackendCall, token: Uint8Array): Uint8Array {
  const { method, path, host, body, keepAlive = false } = call;
  const content =
    body === undefined ? "" : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  const bearer = Buffer.from(token).toString("latin1");
  const connection = keepAlive ? "keep-alive" : "close";
  const head = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${bearer}\r\n${content}Connection: ${connection}\r\n\r\n`;
  return body === undefined ? Buffer.from(head) : Buffer.concat([Buffer.from(head), body]);
}

/**
 * How long an answer says that it is, head included; undefined where its begin does not say it. A hint about the room that it will take:
 * where it ends is told by its connection.
 */
export function announcedBytes(begin: Uint8Array): number | undefined {
  const read = readAnswerHead(begin);
  if (read.kind !== "head") return undefined;
  const { at, bodyAt } = read;
  const head = Buffer.from(begin.buffer, begin.byteOffset + at, bodyAt - at).toString("latin1");
  const [, length] = /\r\ncontent-length:[ \t]*(\d{1,9})[ \t]*\r\n/i.exec(head) ?? [];
  return length === undefined ? undefined : bodyAt + Number(length);
}

/** How an answer ends, for connections that may be kept. */
export interface AnswerFraming {
  /** The whole answer, head included; undefined: it ends with the connection. */
  readonly bytes: number | undefined;
  /** Whether the dispatcher leaves the connection open. */
  readonly keeps: boolean;
}

/** @param head an answer's head, up to its blank line */
export function framingOf(head: string): AnswerFraming {
  const [line = "", ...lines] = head.split("\r\n");
  const lengths: string[] = [];
  let isPlain = line.startsWith("HTTP/1.1 ");
  for (const each of lines) {
    const [, name = "", value = ""] = /^([^:]*):[ \t]*(.*?)[ \t]*$/.exec(each) ?? [];
    if (/^content-length$/i.test(name)) lengths.push(value);
    if (/^transfer-encoding$/i.test(name)) isPlain = false;
    if (/^connection$/i.test(name) && !/^keep-alive$/i.test(value)) isPlain = false;
  }
  const [length = ""] = lengths;
  if (!isPlain || lengths.length !== 1 || !/^\d{1,9}$/.test(length))
    return { bytes: undefined, keeps: false };
  return { bytes: head.length + 4 + Number(length), keeps: true };
}

/**
 * The head of an answer on a connection that is kept, as it goes to a caller: its own connection is closed behind the answer, and a
 * caller that counted on it would lose its next request.
 */
export function closingHead(head: string): string {
  const lines = head.split("\r\n").filter((line) => !/^(?:connection|keep-alive):/i.test(line));
  return [...lines, "Connection: close"].join("\r\n");
}
