// One upgrade attempt over `ws`. The result is handed over synchronously: a message that came in the same segment as the
// 101 would be lost otherwise.
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { WebSocket } from "ws";
import type { ResponseHeaders } from "./core/drain-marker.ts";

/** Most of a refusal's body that is read, and later shown in an error. */
const MAX_REFUSAL_BYTES = 4_096;

/** What to dial, and how. */
export interface DialRequest {
  /** The node's origin with the path of the target. */
  readonly url: URL;
  readonly authority: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly protocols: readonly string[];
  readonly handshakeTimeoutMs: number;
  readonly maxPayloadBytes: number;
  readonly perMessageDeflate: boolean;
  readonly closeTimeoutMs: number;
  /** TLS options of the fleet, for nodes behind https. */
  readonly tls: object;
  /** False: neither the dial nor the connection keeps the process alive. */
  readonly ref: boolean;
}

/** How a dial ended. */
export type DialResult =
  | { readonly kind: "open"; readonly socket: WebSocket; readonly stream: Socket }
  | {
      readonly kind: "status";
      readonly status: number;
      readonly headers: ResponseHeaders;
      readonly body: string;
    }
  | { readonly kind: "unreachable"; readonly error: Error }
  | { readonly kind: "bad-handshake"; readonly error: Error };

/** A dial under way. */
export interface Dial {
  /** Gives up: no result comes, nothing stays open. */
  abort(): void;
}

/** @throws SyntaxError for a subprotocol that cannot be one */
export function dial(request: DialRequest, settle: (result: DialResult) => void): Dial {
  const { authority, closeTimeoutMs, maxPayloadBytes, perMessageDeflate } = request;
  const options = {
    headers: { ...request.headers, host: authority.host },
    maxPayload: maxPayloadBytes,
    perMessageDeflate,
    closeTimeout: closeTimeoutMs,
    ...(request.url.protocol === "https:" ? { servername: authority.hostname, ...request.tls } : {}),
    finishRequest(upgrade: {
      on(event: "socket", listener: (socket: Socket) => void): void;
      end(): void;
    }): void {
      if (!request.ref) upgrade.on("socket", (socket) => socket.unref());
      upgrade.end();
    },
  };
  const socket = new WebSocket(request.url, [...request.protocols], options as WebSocket.ClientOptions);
  let stream: Socket | undefined;
  let settled = false;
  const timer = setTimeout(() => {
    const message = `no answer to the upgrade within ${request.handshakeTimeoutMs} ms (handshakeTimeoutMs)`;
    end({ kind: "unreachable", error: new DOMException(message, "TimeoutError") });
    socket.terminate();
  }, request.handshakeTimeoutMs);
  if (!request.ref) timer.unref();

  function end(result: DialResult): void {
    if (settled) return;
    settled = true;
    clearTimeout(timer);
    settle(result);
  }

  // `ws` reports an error for every way of giving up; this listener stays so that none is unhandled.
  socket.on("error", (error) => end({ kind: stream === undefined ? "unreachable" : "bad-handshake", error }));
  socket.on("upgrade", (response) => {
    stream = response.socket;
  });
  socket.on("unexpected-response", (upgrade, response) => {
    readRefusal(response, (body) => {
      end({ kind: "status", status: response.statusCode ?? 0, headers: response.headers, body });
      // Nobody else ends a refused handshake: `ws` would stay in CONNECTING.
      upgrade.destroy();
      socket.terminate();
    });
  });
  socket.on("open", () => {
    if (stream !== undefined) end({ kind: "open", socket, stream });
  });
  return {
    abort() {
      settled = true;
      clearTimeout(timer);
      socket.terminate();
    },
  };
}

/** Reads the start of a body; what is missing when the connection breaks stays missing. */
function readRefusal(response: IncomingMessage, done: (body: string) => void): void {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  let finished = false;
  const finish = (): void => {
    if (finished) return;
    finished = true;
    done(Buffer.concat(chunks).subarray(0, MAX_REFUSAL_BYTES).toString());
  };
  response.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    sizeBytes += chunk.length;
    if (sizeBytes >= MAX_REFUSAL_BYTES) finish();
  });
  response.on("end", finish);
  response.on("error", finish);
  response.on("close", finish);
}
