/** What Node's HTTP parser refuses, answered in S3's form. */
import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { RequestRefusal } from "../errors.ts";
import { refusalAnswer } from "./answer.ts";

/** The largest head of a request: Node's own default, and twice what S3 takes. */
export const HEADER_LIMIT_BYTES = 16 * 1024;

/** What Node's parser does not take as HTTP, by its code. */
const PARSER_REFUSALS: Readonly<Record<string, readonly [line: string, code: string, message: string]>> = {
  HPE_HEADER_OVERFLOW: [
    "431 Request Header Fields Too Large",
    "RequestHeaderSectionTooLarge",
    `The headers are larger than ${HEADER_LIMIT_BYTES} bytes.`,
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "RequestTimeout", "The request took too long to arrive."],
  HPE_INVALID_EOF_STATE: ["400 Bad Request", "IncompleteBody", "The connection ended within the request."],
};

/** Answers and closes a connection on which something else than HTTP came, or HTTP that ended too early. */
export function answerClientError(
  error: Error & { code?: string },
  socket: Socket,
  response: ServerResponse | undefined,
): void {
  const answering = response?.headersSent === true && !response.writableFinished;
  if (answering || !socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const [line, code, message] = PARSER_REFUSALS[error.code ?? ""] ?? [
    "400 Bad Request",
    "BadRequest",
    "The request is not well-formed HTTP.",
  ];
  const { body } = refusalAnswer(new RequestRefusal(400, code, message), randomUUID());
  const length = Buffer.byteLength(String(body));
  socket.end(
    `HTTP/1.1 ${line}\r\nconnection: close\r\ncontent-type: application/xml\r\ncontent-length: ${length}\r\n\r\n${body}`,
  );
}
