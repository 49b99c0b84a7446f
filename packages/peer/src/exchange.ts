/** One HTTP request to a peer and its whole answer: a connection of its own, bounded in time and bytes, no redirects. */
import { connectTcp, formatAddress, type PeerAddress } from "./connection.ts";
import { PeerNoAnswerError } from "./errors.ts";
import { oneConnection } from "./one-connection.ts";

/** What is sent. */
export interface ExchangeRequest {
  readonly method: "GET" | "POST";
  /** Path and query, sent as they are. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Bounds of an exchange. */
export interface ExchangeBounds {
  readonly connectTimeoutMs: number;
  /** From the first byte of the request to the last of the answer, the connecting not included. */
  readonly totalTimeoutMs: number;
  readonly maxAnswerBytes: number;
  readonly signal?: AbortSignal | undefined;
}

/** The answer. */
export interface ExchangeAnswer {
  readonly status: number;
  /** Of a header that came twice, the first value. Names in lower case. */
  readonly header: (name: string) => string | undefined;
  readonly text: string;
  /** The time of the answer's head by this side's clock, as well as that can be known: half the way back. */
  readonly atMs: number;
  readonly roundTripMs: number;
}

/**
 * Sends a request.
 * @throws PeerUnreachableError (CELLKIT_PEER_UNREACHABLE) when nothing was sent, PeerNoAnswerError
 *   (CELLKIT_PEER_NO_ANSWER) after that, and the signal's reason
 */
export async function exchange(
  address: PeerAddress,
  request: ExchangeRequest,
  bounds: ExchangeBounds,
): Promise<ExchangeAnswer> {
  const { connectTimeoutMs, totalTimeoutMs, maxAnswerBytes, signal } = bounds;
  const where = formatAddress(address);
  // Loaded here: a node, which makes no such calls, starts without it.
  const { Client } = await import("undici");
  const socket = await connectTcp(address, connectTimeoutMs, signal);
  const timeout = AbortSignal.timeout(totalTimeoutMs);
  const client = new Client(`http://${where}`, {
    connect: oneConnection(socket, where),
    maxHeaderSize: 16_384,
    maxResponseSize: maxAnswerBytes,
    headersTimeout: totalTimeoutMs,
    bodyTimeout: totalTimeoutMs,
  });
  const sentMs = Date.now();
  const sent = performance.now();
  try {
    const { statusCode, headers, body } = await client.request({
      method: request.method,
      path: request.target,
      headers: request.headers,
      signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
    });
    const roundTripMs = performance.now() - sent;
    const text = await body.text();
    const header = (name: string): string | undefined => {
      const value = headers[name];
      return Array.isArray(value) ? value[0] : value;
    };
    return { status: statusCode, header, text, atMs: sentMs + roundTripMs / 2, roundTripMs };
  } catch (cause) {
    signal?.throwIfAborted();
    if (cause instanceof PeerNoAnswerError) throw cause;
    throw new PeerNoAnswerError(where, reasonOf(cause, timeout, bounds), { cause });
  } finally {
    socket.destroy();
    await client.destroy();
  }
}

/** The reason of a {@link PeerNoAnswerError} when what came is another protocol. */
export const notHttp = "it is no HTTP";

function reasonOf(cause: unknown, timeout: AbortSignal, bounds: ExchangeBounds): string {
  const code = cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : "";
  if (timeout.aborted || code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT")
    return `nothing complete within ${bounds.totalTimeoutMs} ms`;
  if (code === "UND_ERR_RES_EXCEEDED_MAX_SIZE") return `over ${bounds.maxAnswerBytes} bytes`;
  if (cause instanceof Error && cause.name === "HTTPParserError") return notHttp;
  if (code === "UND_ERR_SOCKET" || code === "ECONNRESET") return "it closed the connection";
  return code === "" ? "the request failed" : code;
}
