// The owner's end of tunnels of kind `do` and `rpc`: plain HTTP/1.1 over any Duplex, served by node:http.

import {
  createServer,
  type IncomingMessage,
  type ServerResponse as PlainResponse,
  type Server,
} from "node:http";
import { performance } from "node:perf_hooks";
import type { Duplex } from "node:stream";
import type { ControlHeaders } from "./call-headers.ts";
import { CallRegistry } from "./call-registry.ts";
import { boundedRequest, type CallRequest } from "./call-request.ts";
import { CallResponse, failedText } from "./call-response.ts";
import { PeerOptionError } from "./errors.ts";
import { IdleTunnels } from "./idle-tunnels.ts";
import { letParserRead, refuseBroken } from "./inner-parser.ts";
import { PeerCall } from "./peer-call.ts";
import { answerRpc, type RpcHandler } from "./rpc.ts";
import { runHandler, warnOf } from "./run-handler.ts";
import { stampHead } from "./upgrade-head.ts";

/** What answers calls; a missing one answers 501. */
export interface CallHandlers {
  /** Answers a fetch. `request.url` is the absolute URL that the calling application used. A throw becomes a 500. */
  onFetch?: (request: IncomingMessage, response: PlainResponse, call: PeerCall) => void | Promise<void>;
  /**
   * Takes a WebSocket handshake, as a server's `upgrade` event: writes the 101 itself, or refuses with a status from 200.
   * A throw or a rejection cuts the connection.
   */
  onConnect?: (
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    call: PeerCall,
  ) => void | Promise<void>;
  onRpc?: RpcHandler;
  /** Told what a handler threw, or what is wrong with its answer; the caller only gets to know that it failed. */
  onError?: (error: unknown, call: PeerCall) => void | Promise<void>;
  /** How long open WebSockets may go on after `close()`; then their clients get 1012, 0 to 600000. @default 5000 */
  socketGraceMs?: number;
}

/** What is known of an established tunnel. */
export interface TunnelFacts {
  kind: "do" | "rpc";
  source: string;
  recorded: boolean;
}

export interface CallLimits {
  maxBodyBytes: number;
  /** How long a tunnel may be without a call: until the whole head of its first one, and between two. */
  tunnelIdleMs: number;
}

const nowMs = (): number => performance.now();

const defaultSocketGraceMs = 5_000;
const maxSocketGraceMs = 600_000;
/** Same bound as for a client's head: what came in must be able to go on. */
const maxInnerHeadBytes = 64 * 1024;

export class CallServer {
  readonly #server: Server;
  readonly #handlers: CallHandlers;
  readonly #registry = new CallRegistry();
  readonly #tunnels = new Map<Duplex, TunnelFacts & { calls: number; isSocket: boolean }>();
  readonly #idle: IdleTunnels;
  readonly #socketGraceMs: number;
  #calls = 0;
  #sockets = 0;
  #closed: PromiseWithResolvers<void> | undefined;
  #grace: NodeJS.Timeout | undefined;

  /** @throws PeerOptionError (CELLKIT_PEER_OPTION) */
  constructor(handlers: CallHandlers, { maxBodyBytes, tunnelIdleMs }: CallLimits) {
    const { socketGraceMs = defaultSocketGraceMs } = handlers;
    if (!(socketGraceMs >= 0 && socketGraceMs <= maxSocketGraceMs)) {
      throw new PeerOptionError("socketGraceMs", `is ${socketGraceMs}: use 0 to ${maxSocketGraceMs}`);
    }
    this.#handlers = handlers;
    this.#socketGraceMs = socketGraceMs;
    this.#idle = new IdleTunnels(tunnelIdleMs);
    this.#server = createServer(
      {
        IncomingMessage: boundedRequest(maxBodyBytes),
        // Its constructor takes any request; the type asks for one generic over the request's class.
        ServerResponse: CallResponse as unknown as typeof PlainResponse,
        requireHostHeader: false,
        keepAliveTimeout: tunnelIdleMs,
        requestTimeout: 0,
        maxHeaderSize: maxInnerHeadBytes,
      },
      (request, response) => this.#request(request as CallRequest, response as unknown as CallResponse),
    );
    this.#server.on("clientError", refuseBroken);
    if (handlers.onConnect !== undefined) {
      this.#server.on("upgrade", (request, socket, head) => {
        this.#upgrade(request as CallRequest, socket, head);
      });
    }
  }

  get tunnelCount(): number {
    return this.#tunnels.size;
  }

  get callCount(): number {
    return this.#calls;
  }

  get socketCount(): number {
    return this.#sockets;
  }

  /** Serves the calls of one tunnel until either end closes it. */
  serve(tunnel: Duplex, facts: TunnelFacts): void {
    this.#tunnels.set(tunnel, { ...facts, calls: 0, isSocket: false });
    this.#idle.wait(tunnel);
    tunnel.once("close", () => {
      this.#idle.settle(tunnel);
      this.#tunnels.delete(tunnel);
      this.#settle();
    });
    letParserRead(tunnel);
    this.#server.emit("connection", tunnel);
    if (this.#closed !== undefined) tunnel.end();
  }

  cancel(scope: string, requestId: string): void {
    this.#registry.cancel(scope, requestId, nowMs());
  }

  /**
   * Ends idle tunnels, the others when their call is answered, and WebSockets after a grace; resolves when none is left.
   */
  close(): Promise<void> {
    if (this.#closed === undefined) {
      this.#closed = Promise.withResolvers();
      for (const [tunnel, { calls }] of this.#tunnels) if (calls === 0) tunnel.end();
      this.#grace = setTimeout(() => this.#cutSockets(), this.#socketGraceMs);
      this.#settle();
    }
    return this.#closed.promise;
  }

  /** Cuts every tunnel. */
  destroy(): void {
    for (const tunnel of this.#tunnels.keys()) tunnel.destroy();
  }

  #settle(): void {
    if (this.#tunnels.size > 0 || this.#closed === undefined) return;
    clearTimeout(this.#grace);
    this.#closed.resolve();
  }

  /** The dialling end tells the client: it knows whether a close frame fits. */
  #cutSockets(): void {
    for (const [tunnel, { isSocket }] of this.#tunnels) if (isSocket) tunnel.destroy();
  }

  #report(error: unknown, call: PeerCall): void {
    runHandler(() => this.#handlers.onError?.(error, call), warnOf);
  }

  #request(request: CallRequest, response: CallResponse): void {
    const tunnel = this.#tunnels.get(request.socket);
    if (tunnel === undefined) {
      request.socket.destroy();
      return;
    }
    const control = request.takeControl();
    const { scope } = control;
    if (this.#closed !== undefined) response.shouldKeepAlive = false;
    if (scope === undefined || control.malformed) {
      response.answerForHandler(400, '{"error":"malformed_cell_scope"}');
      return;
    }
    const refuse = () => {
      if (response.headersSent) request.socket.destroy();
      else {
        response.shouldKeepAlive = false;
        response.answerForHandler(413, "request body too large");
      }
    };
    if (request.declaresTooMuch) {
      refuse();
      return;
    }
    request.tooLarge = refuse;
    const call = new PeerCall(factsOf(control, scope, tunnel), response);
    if (!this.#registry.begin(call, () => request.socket.destroy(), nowMs)) {
      request.socket.destroy();
      return;
    }
    const report = (error: unknown) => this.#report(error, call);
    response.onIrregular = report;
    // As for a handler that writes behind its end.
    response.on("error", report);
    const { socket } = request;
    this.#calls += 1;
    tunnel.calls += 1;
    this.#idle.settle(socket);
    response.once("close", () => {
      this.#calls -= 1;
      tunnel.calls -= 1;
      if (tunnel.calls === 0 && this.#tunnels.has(socket)) this.#idle.wait(socket);
      this.#registry.end(call);
      if (!response.writableFinished) call.abort();
      if (this.#closed !== undefined && tunnel.calls === 0) socket.end();
    });
    this.#run(request, response, call, { kind: tunnel.kind, rpcMethod: control.rpcMethod });
  }

  #run(
    request: CallRequest,
    response: CallResponse,
    call: PeerCall,
    { kind, rpcMethod }: { kind: "do" | "rpc"; rpcMethod: string | undefined },
  ): void {
    const failed = (error: unknown) => {
      this.#report(error, call);
      // An answer that has its end stands.
      if (response.writableEnded) return;
      if (response.headersSent) request.socket.destroy();
      else response.answerForHandler(500, failedText);
    };
    const { onFetch, onRpc } = this.#handlers;
    if (kind === "do" && onFetch !== undefined) {
      runHandler(() => onFetch(request, response as unknown as PlainResponse, call), failed);
    } else if (kind === "rpc" && onRpc !== undefined) {
      const report = (error: unknown) => this.#report(error, call);
      runHandler(() => answerRpc({ request, response, call, report }, rpcMethod, onRpc), failed);
    } else response.answerForHandler(501, "not served here");
  }

  #upgrade(request: CallRequest, socket: Duplex, head: Buffer): void {
    const tunnel = this.#tunnels.get(socket);
    const control = request.takeControl();
    const { scope } = control;
    stampHead(socket);
    // From here on errors of the connection are the handler's; without one of its own they must not end the process.
    socket.on("error", () => undefined);
    if (tunnel === undefined || scope === undefined || control.malformed || tunnel.kind !== "do") {
      socket.end("HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
      return;
    }
    if (request.headers.upgrade?.toLowerCase() !== "websocket") {
      socket.end("HTTP/1.1 501 Not Implemented\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
      return;
    }
    if (this.#closed !== undefined) {
      socket.end("HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
      return;
    }
    const call = new PeerCall(factsOf(control, scope, tunnel));
    if (!this.#registry.begin(call, () => socket.destroy(), nowMs)) {
      socket.destroy();
      return;
    }
    this.#sockets += 1;
    tunnel.calls += 1;
    tunnel.isSocket = true;
    this.#idle.settle(socket);
    socket.once("close", () => {
      this.#sockets -= 1;
      this.#registry.end(call);
      call.abort();
    });
    runHandler(
      () => this.#handlers.onConnect?.(request, socket, head, call),
      (error) => {
        this.#report(error, call);
        socket.destroy();
      },
    );
  }
}

function factsOf(control: ControlHeaders, scope: string, { source, recorded }: TunnelFacts) {
  const { name, requestId, capacityHandoff } = control;
  return { scope, name, requestId, capacityHandoff, source, recorded };
}
