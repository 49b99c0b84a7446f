// One HTTP call on a connection of its own, as routers want it: they answer one request a connection. Nothing is repeated, no
// redirect is followed, no proxy of the environment is used, and a certificate is always verified.
import { TLSSocket } from "node:tls";
import { Client } from "undici";
import {
  type ConnectionCall,
  ExchangeEndError,
  isClientRefusal,
  singleConnection,
} from "./single-connection.ts";

export interface WireCall extends ConnectionCall {
  readonly origin: string;
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | undefined;
  /** A body that is longer ends the call. */
  readonly maxBodyBytes: number;
}

/**
 * How a call ended. `not-sent`: no connection came about, so nobody read a byte of the request. `client-refused`: neither, since the
 * other side wants a certificate of ours, or another one. `lost`: the connection stood; `status` is there when the head of an answer
 * came.
 */
export type Exchanged =
  | { readonly kind: "answer"; readonly status: number; readonly body: Uint8Array }
  | { readonly kind: "not-sent"; readonly cause: unknown }
  | { readonly kind: "client-refused"; readonly cause: unknown }
  | { readonly kind: "lost"; readonly cause: unknown; readonly status?: number };

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
        if (progress.status === undefined && isUnread(socket) && isClientRefusal(error))
          progress.refused = error;
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
    if (progress.refused !== undefined) return { kind: "client-refused", cause: progress.refused };
    if (!progress.connected) return { kind: isClientRefusal(cause) ? "client-refused" : "not-sent", cause };
    return progress.status === undefined
      ? { kind: "lost", cause }
      : { kind: "lost", cause, status: progress.status };
  } finally {
    await client.destroy();
  }
}

/** In TLS 1.3 a certificate is judged before a byte of the request is read; before that, it may be asked for again after a request. */
function isUnread(socket: unknown): boolean {
  return socket instanceof TLSSocket && socket.getProtocol() === "TLSv1.3";
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
