// One HTTP call on a connection of its own, as routers want it: they answer one request a connection. Nothing is repeated, no
// redirect is followed, no proxy of the environment is used, and a certificate is always verified.
import type { Socket } from "node:net";
import { buildConnector, Client } from "undici";
import { causeCode } from "./cause-code.ts";

export interface WireCall {
  readonly origin: string;
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | undefined;
  /** PEM certificates instead of the system's. */
  readonly ca: string | undefined;
  readonly connectTimeoutMs: number;
  /** A body that is longer ends the call. */
  readonly maxBodyBytes: number;
  /** Ends the call, whatever it waits for. */
  readonly signal: AbortSignal;
}

/**
 * How a call ended. `not-sent`: no connection came about, so nobody read a byte of the request. `lost`: the connection stood;
 * `status` is there when the head of an answer came.
 */
export type Exchanged =
  | { readonly kind: "answer"; readonly status: number; readonly body: Uint8Array }
  | { readonly kind: "not-sent"; readonly cause: unknown }
  | { readonly kind: "lost"; readonly cause: unknown; readonly status?: number };

/** Why a call was ended from this side; only ever the cause of a public error. */
class ExchangeEndError extends Error {
  override readonly name = "ExchangeEndError";
}

export async function exchange(call: WireCall): Promise<Exchanged> {
  const progress = {
    connected: false,
    status: undefined as number | undefined,
    refused: undefined as unknown,
  };
  const client = new Client(call.origin, {
    allowH2: false,
    // Without keep-alive: undici then sends `connection: close`.
    pipelining: 0,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: singleConnection(call, (socket) => {
      progress.connected = true;
      // undici only tells that the other side closed.
      socket.on("error", (error) => {
        if (causeCode(error) === "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED") progress.refused = error;
      });
    }),
  });
  try {
    const { method, path, headers, signal } = call;
    const answer = await client.request({ method, path, headers, signal, body: call.body ?? null });
    progress.status = answer.statusCode;
    return { kind: "answer", status: answer.statusCode, body: await collect(answer.body, call.maxBodyBytes) };
  } catch (error) {
    const cause = call.signal.aborted ? call.signal.reason : error;
    // The other side wants a certificate of ours. In TLS 1.3 that is learnt when our side of the handshake has ended already (RFC
    // 8446, section 6.2); what was written meanwhile was dropped unread.
    if (progress.refused !== undefined) return { kind: "not-sent", cause: progress.refused };
    if (!progress.connected) return { kind: "not-sent", cause };
    return progress.status === undefined
      ? { kind: "lost", cause }
      : { kind: "lost", cause, status: progress.status };
  } finally {
    await client.destroy();
  }
}

/** Connects once, so that a request cannot leave twice within a call, whatever the HTTP client thinks may be repeated. */
export function singleConnection(
  call: Pick<WireCall, "ca" | "connectTimeoutMs">,
  onConnected: (socket: Socket) => void,
): buildConnector.connector {
  const connect = buildConnector({
    allowH2: false,
    timeout: call.connectTimeoutMs,
    // Given here it also holds against NODE_TLS_REJECT_UNAUTHORIZED.
    rejectUnauthorized: true,
    ...(call.ca === undefined ? {} : { ca: call.ca }),
  });
  let dialled = false;
  return (options, done) => {
    if (dialled) return done(new ExchangeEndError("the connection was closed before an answer"), null);
    dialled = true;
    connect(options, (...[error, socket]) => {
      if (error !== null) return done(error, null);
      onConnected(socket);
      done(null, socket);
    });
  };
}

async function collect(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > maxBytes) throw new ExchangeEndError(`the answer is longer than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}
