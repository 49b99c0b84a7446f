// The TLS listener: HTTP/1.1 only, every request through the decision, every connection bounded.
import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import {
  type Address,
  type CertificatePair,
  certificateTlsOptions,
  ListenError,
  type Logger,
} from "@cellkit/daemon";
import { Backend } from "./backend.ts";
import { ClientConnection } from "./client-connection.ts";
import { type AllowedRoute, allowedRoutes, type EdgeMode, type IdGrammar } from "./core/allowlist.ts";
import type { BackendOrigin } from "./core/backend-origin.ts";
import { decideRequest, maxHeadBytes } from "./core/decide-request.ts";
import type { Refusal } from "./core/refusal.ts";
import { Exchange, type Outcome } from "./exchange.ts";
import { type EdgeLimits, resolveLimits } from "./limits.ts";

/** What a listener is made of. */
export interface EdgeListenerOptions {
  backend: BackendOrigin;
  /** @default "parent" */
  mode?: EdgeMode;
  /** @default "router" */
  ids?: IdGrammar;
  certificate: CertificatePair;
  log: Logger;
  limits?: Partial<EdgeLimits>;
}

/** What has happened since the start. */
export interface EdgeCounts {
  forwarded: number;
  unavailable: number;
  cut: number;
  refused: Partial<Record<Refusal, number>>;
  handshakeFailures: number;
  /** Connections past twice the cap, closed without a handshake. */
  dropped: number;
}

/** How often deadlines are looked at. */
const checkMs = 500;

/** The share of an answer's time after which a client that has none gets 502, in the time that is left. */
const giveUpRatio = 0.95;

/** A listener in front of one backend. */
export class EdgeListener {
  readonly counts: EdgeCounts = {
    forwarded: 0,
    unavailable: 0,
    cut: 0,
    refused: {},
    handshakeFailures: 0,
    dropped: 0,
  };
  readonly backend: Backend;
  readonly #log: Logger;
  readonly #limits: EdgeLimits;
  readonly #routes: readonly AllowedRoute[];
  readonly #server: ReturnType<typeof createServer>;
  readonly #connections = new Map<Duplex, ClientConnection>();
  readonly #exchanges = new Map<Exchange, number>();
  readonly #requestPrefix = randomBytes(4).toString("hex");
  #requestCount = 0;
  #closing: Promise<void> | undefined;

  constructor(options: EdgeListenerOptions) {
    const limits = resolveLimits(options.limits);
    this.#limits = limits;
    this.#log = options.log;
    this.#routes = allowedRoutes(options.mode ?? "parent", options.ids);
    this.backend = new Backend(options.backend, limits);
    this.#server = createServer({
      ...certificateTlsOptions(options.certificate),
      handshakeTimeout: limits.handshakeTimeoutMs,
      maxHeaderSize: maxHeadBytes,
      headersTimeout: limits.headTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.idleTimeoutMs,
      connectionsCheckingInterval: checkMs,
      insecureHTTPParser: false,
    });
    // Node's own listener would end a connection whose client has ended its side, whatever is still to be answered on it.
    Object.assign(this.#server, { httpAllowHalfOpen: true });
    // Fields past a count would be dropped without a word; the head's size bounds them.
    this.#server.maxHeadersCount = 0;
    this.#server.maxConnections = 2 * limits.connectionCount;
    this.#server
      .on("drop", () => {
        this.counts.dropped += 1;
      })
      .on("secureConnection", (socket) => this.#connected(socket))
      .on("request", (request, response) => this.#serve(request, response, false))
      .on("checkContinue", (request, response) => this.#serve(request, response, true))
      .on("checkExpectation", (request, response) => this.#serve(request, response, true))
      .on("connect", (_, socket) => this.#broken("no-route", socket))
      .on("clientError", (error, socket) => this.#broken(refusalOf(error), socket))
      .on("tlsClientError", (error: NodeJS.ErrnoException) => {
        this.counts.handshakeFailures += 1;
        this.#log.debug({ code: error.code }, "a TLS handshake failed");
      });
    const checking = setInterval(() => this.#checkDeadlines(), checkMs).unref();
    this.#server.once("close", () => clearInterval(checking));
  }

  /** Opens the listener. @throws {@link ListenError} (`CELLKIT_DAEMON_LISTEN`) */
  listen({ host, port }: Address): Promise<Address> {
    return new Promise((resolve, reject) => {
      const refused = (cause: unknown) => reject(new ListenError(host, port, { cause }));
      this.#server.once("error", refused);
      this.#server.listen({ host, port }, () => {
        this.#server.off("error", refused);
        resolve({ host, port: (this.#server.address() as AddressInfo).port });
      });
    });
  }

  /** Client connections, and requests not yet answered. */
  get open(): { connections: number; requests: number } {
    return { connections: this.#connections.size, requests: this.#exchanges.size };
  }

  /** Connections from here on get this certificate; those that are open keep theirs. */
  useCertificate(certificate: CertificatePair): void {
    this.#server.setSecureContext(certificateTlsOptions(certificate));
  }

  /** Stops accepting, lets requests that run end, and closes what is left when the signal says so. Idempotent. */
  close(signal?: AbortSignal): Promise<void> {
    this.#closing ??= this.#closeAll();
    const cut = () => {
      for (const socket of this.#connections.keys()) socket.destroy();
    };
    if (signal?.aborted === true) cut();
    else signal?.addEventListener("abort", cut, { once: true });
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #closeAll(): Promise<void> {
    if (this.#server.listening) {
      const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
      for (const connection of this.#connections.values()) connection.end();
      await closed;
    }
    await this.backend.close();
  }

  #connected(socket: Socket): void {
    const isExcess = this.#connections.size >= this.#limits.connectionCount;
    const connection = new ClientConnection(socket, this.#limits, isExcess);
    this.#connections.set(socket, connection);
    // Not from the start: a handshake that its client has ended is over.
    socket.allowHalfOpen = true;
    socket.once("end", () => connection.halfClosed());
    // A connection's errors are of no interest, but after a CONNECT nobody else would hear them.
    socket.on("error", () => undefined).once("close", () => this.#connections.delete(socket));
  }

  #serve(request: IncomingMessage, response: ServerResponse, waitsForGoAhead: boolean): void {
    const connection = this.#connections.get(request.socket);
    connection?.serve(() => this.#begin(connection, request, response, waitsForGoAhead));
  }

  #begin(
    connection: ClientConnection,
    request: IncomingMessage,
    response: ServerResponse,
    waitsForGoAhead: boolean,
  ): Exchange {
    this.#requestCount += 1;
    const id = `${this.#requestPrefix}-${this.#requestCount}`;
    const startMs = performance.now();
    const { method = "", url: target = "", httpVersion: version, rawHeaders: fields } = request;
    const decision = decideRequest(this.#routes, { method, target, version, fields });
    const exchange = new Exchange({
      ...{ id, request, response, connection, waitsForGoAhead, limits: this.#limits },
      onEnd: (outcome) => {
        this.#exchanges.delete(exchange);
        const route = decision.kind === "forward" ? { method, path: target } : {};
        this.#ended(outcome, { request: id, ...route, tookMs: Math.round(performance.now() - startMs) });
      },
    });
    this.#exchanges.set(exchange, startMs);
    if (connection.isExcess) exchange.refuse("too-many-connections", true);
    else if (decision.kind === "refuse") exchange.refuse(decision.refusal, decision.closes);
    else exchange.forward(this.backend, decision.fields, decision.hasBody);
    return exchange;
  }

  /** A refused target is not logged: nobody knows what stands in it. One that fits the allowlist is. */
  #ended(outcome: Outcome, about: Record<string, unknown>): void {
    switch (outcome.kind) {
      case "forwarded":
        this.counts.forwarded += 1;
        this.#log.debug({ ...about, status: outcome.status }, "forwarded");
        return;
      case "refused":
        this.counts.refused[outcome.refusal] = (this.counts.refused[outcome.refusal] ?? 0) + 1;
        this.#log.info({ ...about, refusal: outcome.refusal }, "refused");
        return;
      case "unavailable":
        this.counts.unavailable += 1;
        this.#log.warn({ ...about, ...reasonOf(outcome.error) }, "the backend did not answer");
        return;
      case "cut":
        this.counts.cut += 1;
        this.#log.info(
          { ...about, ...reasonOf(outcome.error) },
          "the connection was cut before the answer was out",
        );
    }
  }

  #broken(refusal: Refusal | undefined, socket: Duplex): void {
    const connection = this.#connections.get(socket);
    if (connection === undefined || refusal === undefined || !socket.writable) {
      socket.destroy();
      return;
    }
    if (!connection.broken(refusal)) return;
    this.counts.refused[refusal] = (this.counts.refused[refusal] ?? 0) + 1;
    this.#log.info({ refusal }, "refused");
  }

  #checkDeadlines(): void {
    const nowMs = performance.now();
    for (const [exchange, startMs] of this.#exchanges) {
      const ratio = (nowMs - startMs) / this.#limits.answerTimeoutMs;
      if (ratio >= giveUpRatio && !exchange.giveUp() && ratio >= 1) exchange.destroy();
    }
  }
}

/** undefined: nobody is there to be told. */
function refusalOf({ code = "" }: NodeJS.ErrnoException): Refusal | undefined {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return "timeout";
  if (code === "HPE_HEADER_OVERFLOW") return "head-too-large";
  return code.startsWith("HPE_") ? "malformed" : undefined;
}

function reasonOf(error: Error | undefined): Record<string, unknown> {
  if (error === undefined) return {};
  const { code } = error as NodeJS.ErrnoException;
  return { reason: code === undefined ? error.name : code };
}
