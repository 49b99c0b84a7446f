// A WebSocket handshake through a tunnel: 101 and the connection, or the answer that refused it.

import { createHash, randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { type Duplex, Readable } from "node:stream";
import type { Dispatcher } from "undici";
import type { DialBounds } from "./tunnel-route.ts";

/** What came back. */
export type HandshakeAnswer =
  | { kind: "socket"; headers: IncomingHttpHeaders; socket: Duplex }
  | { kind: "response"; status: number; headers: IncomingHttpHeaders; body: Readable };

const acceptGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** Value of `Sec-WebSocket-Accept` for a key (RFC 6455 §4.2.2). */
export function webSocketAccept(key: string): string {
  return createHash("sha1").update(key).update(acceptGuid).digest("base64");
}

/** A fresh value of `Sec-WebSocket-Key`. */
export function webSocketKey(): string {
  return randomBytes(16).toString("base64");
}

/** Sends the handshake. @throws what the dispatcher does, and the signal's reason */
export function handshake(
  dispatcher: Dispatcher,
  request: { path: string; headers: string[] } & DialBounds,
  signal?: AbortSignal,
): Promise<HandshakeAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<HandshakeAnswer>();
  let controller: Dispatcher.DispatchController | undefined;
  let body: Readable | undefined;
  const abort = () => {
    const reason: unknown = signal?.reason;
    reject(reason);
    controller?.abort(reason instanceof Error ? reason : new DOMException("aborted", "AbortError"));
  };
  const answered = () => signal?.removeEventListener("abort", abort);
  if (signal?.aborted) {
    abort();
    return promise;
  }
  signal?.addEventListener("abort", abort, { once: true });
  dispatcher.dispatch(
    { ...request, method: "GET", upgrade: "websocket" },
    {
      onRequestStart(given) {
        controller = given;
        if (signal?.aborted) abort();
      },
      onRequestUpgrade(_, _status, headers, socket) {
        answered();
        resolve({ kind: "socket", headers, socket });
      },
      onResponseStart(given, status, headers) {
        if (status < 200) return;
        answered();
        body = new Readable({
          read: () => given.resume(),
          destroy: (error, done) => cut(given, error, done),
        });
        resolve({ kind: "response", status, headers, body });
      },
      onResponseData(given, chunk) {
        if (body?.push(chunk) === false) given.pause();
      },
      onResponseEnd() {
        body?.push(null);
      },
      onResponseError(_, error) {
        answered();
        reject(error);
        body?.destroy(error);
      },
    },
  );
  return promise;
}

function cut(
  controller: Dispatcher.DispatchController,
  error: Error | null,
  done: (error?: Error | null) => void,
): void {
  controller.abort(error ?? new DOMException("the body was not read to its end", "AbortError"));
  done(error);
}
