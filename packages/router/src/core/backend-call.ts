// Calls to dispatchers as they go over the wire (execution API, section 4.5). Old dispatchers read some names with exact case.

/** One call. */
export interface BackendCall {
  readonly method: "GET" | "POST";
  readonly path: string;
  /** What `Host` says: the whole origin, or `dispatcher` for capabilities. */
  readonly host: string;
  /** Exact bytes; undefined for a GET. An empty one is sent with its length. */
  readonly body?: Uint8Array | undefined;
  /** Leave the connection open behind the answer. */
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

/** The status of an answer: the second word of its first line, 502 where that is none. */
export function statusOf(answer: Uint8Array): number {
  const start = Buffer.from(answer.buffer, answer.byteOffset, Math.min(answer.length, 256)).toString(
    "latin1",
  );
  const [line = ""] = start.split(/[\r\n]/, 1);
  const [, word = ""] = line.split(/\s+/, 2);
  return /^\d{3}$/.test(word) ? Number(word) : 502;
}

/** Where the body of an answer begins; undefined where its head has no end, which makes it no answer. */
export function bodyStart(answer: Uint8Array): number | undefined {
  const at = Buffer.from(answer.buffer, answer.byteOffset, answer.length).indexOf("\r\n\r\n");
  return at === -1 ? undefined : at + 4;
}
