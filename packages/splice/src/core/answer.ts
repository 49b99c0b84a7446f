// Answers that this server makes itself, as bytes (RFC 9112 §4; RFC 9209 for Proxy-Status).

/** An answer of our own. */
export interface LocalAnswer {
  /** 200 to 599. */
  status: number;
  /** Further fields; not `content-length`, `connection` and `date`, which are added. Names and values must be valid. */
  headers?: Readonly<Record<string, string>>;
  body?: string;
  /** Close the connection after it. Default false; always closed when the request has a body or asked for it. */
  close?: boolean;
}

/** Whether the Worker can have seen the request: `not-run` is a promise that it has not. */
export type Outcome = "not-run" | "unknown";

const reasons: Readonly<Record<number, string>> = {
  200: "OK",
  204: "No Content",
  400: "Bad Request",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  500: "Internal Server Error",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
};

/**
 * The bytes of an answer.
 * @param request what the answer depends on: `isHead` leaves the body out, `close` adds `Connection: close`
 * @param date value of the Date field
 */
export function encodeAnswer(
  answer: LocalAnswer,
  request: { isHead: boolean; close: boolean },
  date: string,
): Uint8Array {
  const encoder = new TextEncoder();
  const body = encoder.encode(answer.body ?? "");
  let head = `HTTP/1.1 ${answer.status} ${reasons[answer.status] ?? "Status"}\r\n`;
  for (const [name, value] of Object.entries(answer.headers ?? {})) head += `${name}: ${value}\r\n`;
  if (request.close) head += "connection: close\r\n";
  if (answer.status !== 204 && answer.status !== 304) head += `content-length: ${body.length}\r\n`;
  head += `date: ${date}\r\n\r\n`;
  const headBytes = encoder.encode(head);
  if (request.isHead || answer.status === 204 || answer.status === 304) return headBytes;
  const bytes = new Uint8Array(headBytes.length + body.length);
  bytes.set(headBytes);
  bytes.set(body, headBytes.length);
  return bytes;
}

function ownAnswer(status: number, body: object, outcome: Outcome, proxyError?: string): LocalAnswer {
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (status === 503) headers["retry-after"] = "1";
  if (proxyError !== undefined) headers["proxy-status"] = `celld; error=${proxyError}`;
  headers["cellkit-outcome"] = outcome;
  return { status, headers, body: JSON.stringify(body), close: true };
}

/** The exact refusal of a node that drains; clients recognise it by its body and repeat the request elsewhere. */
export const drainRefusal: LocalAnswer = ownAnswer(
  503,
  { ok: false, draining: true },
  "not-run",
  "destination_unavailable",
);

/** No upstream took the request: none is running, or none could be dialled. */
export function unavailableAnswer(proxyError: "destination_unavailable" | "connection_refused"): LocalAnswer {
  return ownAnswer(503, { ok: false, error: "unavailable" }, "not-run", proxyError);
}

/** The upstream took the request and was lost before its answer. */
export function lostAnswer(proxyError: "connection_terminated" | "http_protocol_error"): LocalAnswer {
  return ownAnswer(502, { ok: false, error: "upstream lost" }, "unknown", proxyError);
}

/** The request cannot be framed with certainty. */
export function badRequestAnswer(rule: string, outcome: Outcome): LocalAnswer {
  return ownAnswer(400, { ok: false, error: "bad_request", rule }, outcome);
}

/** The request head did not come in time. */
export const timeoutAnswer: LocalAnswer = ownAnswer(408, { ok: false, error: "request_timeout" }, "not-run");

/** CONNECT: a Worker's public listener is no proxy. */
export const connectAnswer: LocalAnswer = ownAnswer(501, { ok: false, error: "not_implemented" }, "not-run");
