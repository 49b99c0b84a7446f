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
import { CallResponse } from "./call-response.ts";
import { PeerCall } from "./peer-call.ts";
import { answerRpc, type RpcHandler } from "./rpc.ts";
import { stampHead } from "./upgrade-head.ts";

/** What answers calls; a missing one answers 501. */
export interface CallHandlers {
  /** Answers a fetch. `request.url` is the absolute URL that the calling application used. A throw becomes a 500. */
  onFetch?: (request: IncomingMessage, response: PlainResponse, call: PeerCall) => void | Promise<void>;
  /** Takes a WebSocket handshake, as a server's `upgrade` event: writes the 101 itself, or refuses. */
  onConnect?: (request: IncomingMessage, socket: Duplex, head: Buffer, call: PeerCall) => void;
  onRpc?: RpcHandler;
  /** Told what a handler threw; the caller only gets to know that it failed. */
  onError?: (error: unknown, call: PeerCall) => void;
}

/** What is known of an established tunnel. */
export interface TunnelFacts {
  kind: "do" | "rpc";
  source: string;
  recorded: boolean;
}

export interface CallLimits {
  maxBodyBytes: number;
  /** How long a tunnel may be idle between calls. */
  tunnelIdleMs: number;
}

const nowMs = (): number => performance.now();

/** Same bound as for a client's head: what came in must be able to go on. */
const maxInnerHeadBytes = 64 * 1024;

export class CallServer {
  readonly #server: Server;
  readonly #handlers: CallHandlers;
  readonly #registry = new CallRegistry();
  readonly #tunnels = new Map<Duplex, TunnelFacts & { calls: number }>();
  #calls = 0;
  #sockets = 0;
  #closed: PromiseWithResolvers<void> | undefined;

  constructor(handlers: CallHandlers, { maxBodyBytes, tunnelIdleMs }: CallLimits) {
    this.#handlers = handlers;
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
    this.#tunnels.set(tunnel, { ...facts, calls: 0 });
    tunnel.once("close", () => {
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

  /** Ends idle tunnels, and the others when their call is answered; resolves when none is left. */
  close(): Promise<void> {
    if (this.#closed === undefined) {
      this.#closed = Promise.withResolvers();
      for (const [tunnel, { calls }] of this.#tunnels) if (calls === 0) tunnel.end();
      this.#settle();
    }
    return this.#closed.promise;
  }

  /** Cuts every tunnel. */
  destroy(): void {
    for (const tunnel of this.#tunnels.keys()) tunnel.destroy();
  }

  #settle(): void {
    if (this.#tunnels.size === 0) this.#closed?.resolve();
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
      response.writeHead(400, { "content-type": "application/json" }).end('{"error":"malformed_cell_scope"}');
      return;
    }
    const refuse = () => {
      if (response.headersSent) request.socket.destroy();
      else response.writeHead(413, { connection: "close" }).end("request body too large");
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
    this.#calls += 1;
    tunnel.calls += 1;
    response.once("close", () => {
      this.#calls -= 1;
      tunnel.calls -= 1;
      this.#registry.end(call);
      if (!response.writableFinished) call.abort();
      if (this.#closed !== undefined && tunnel.calls === 0) request.socket.end();
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
      this.#handlers.onError?.(error, call);
      if (response.headersSent) request.socket.destroy();
      else response.writeHead(500, { "content-type": "application/json" }).end("cell Worker failed");
    };
    const { onFetch, onRpc } = this.#handlers;
    try {
      if (kind === "do" && onFetch !== undefined) {
        const done = onFetch(request, response, call);
        if (done instanceof Promise) done.catch(failed);
      } else if (kind === "rpc" && onRpc !== undefined) {
        answerRpc({ request, response, call }, rpcMethod, onRpc).catch(failed);
      } else response.writeHead(501, { "content-type": "application/json" }).end("not served here");
    } catch (error) {
      failed(error);
    }
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
    const call = new PeerCall(factsOf(control, scope, tunnel));
    if (!this.#registry.begin(call, () => socket.destroy(), nowMs)) {
      socket.destroy();
      return;
    }
    this.#sockets += 1;
    tunnel.calls += 1;
    socket.once("close", () => {
      this.#sockets -= 1;
      this.#registry.end(call);
      call.abort();
    });
    try {
      this.#handlers.onConnect?.(request, socket, head, call);
    } catch (error) {
      this.#handlers.onError?.(error, call);
      socket.destroy();
    }
  }
}

/**
 * Node's HTTP parser reads a socket without passing each chunk through JavaScript, unless a flag says that it does so
 * already. An upgrade ends that reading but leaves the flag, which would make every call in a tunnel cost some
 * microseconds more. Where Node has no such flag, nothing happens.
 */
function letParserRead(tunnel: Duplex): void {
  const { _handle: handle } = tunnel as { _handle?: { _consumed?: boolean } | null };
  if (handle?._consumed === true) handle._consumed = false;
}

function factsOf(control: ControlHeaders, scope: string, { source, recorded }: TunnelFacts) {
  const { name, requestId, capacityHandoff } = control;
  return { scope, name, requestId, capacityHandoff, source, recorded };
}
