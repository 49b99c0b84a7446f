import { createServer, type Server, type Socket } from "node:net";
import { performance } from "node:perf_hooks";
import { Connection } from "./connection.ts";
import type { ConnectionHost, HostedConnection, SpliceTotals } from "./connection-host.ts";
import { closeFrame } from "./core/close-frame.ts";
import { ListenError } from "./errors.ts";
import { type CloseReason, resolveOptions, type SpliceServerOptions } from "./options.ts";
import { ReadBuffer } from "./read-buffer.ts";

/** What is open at this instant. */
export interface SpliceCounts {
  /** Client connections, idle and upgraded ones included. */
  connections: number;
  /** Requests forwarded whose answer is not whole; during a drain also heads that were half here when it began. */
  inFlight: number;
  /** Upgraded connections. */
  sockets: number;
}

/** A public listener that passes requests to one upstream at a time and can answer for it. */
export interface SpliceServer {
  /** Opens the listener. @param port 0 for any free one @throws ListenError (CELLKIT_SPLICE_LISTEN) */
  listen(host: string, port: number): Promise<{ host: string; port: number }>;
  /** From here on each new request gets the refusal; what is in flight is served. Idempotent; there is no way back. */
  drain(): void;
  readonly draining: boolean;
  /**
   * Closes each upgraded connection, and each that is upgraded later, with a close frame at a frame boundary.
   * @throws OptionError (CELLKIT_SPLICE_OPTION) for a code or reason that no close frame may have
   */
  closeSockets(code: number, reason: string): void;
  /** Resolves when no request is in flight and no upgraded connection is left. @throws the signal's reason */
  finished(options?: { signal?: AbortSignal }): Promise<void>;
  counts(): SpliceCounts;
  /** Counters since the start; the same object each time. */
  readonly totals: Readonly<SpliceTotals>;
  /** Stops listening, ends idle connections with a FIN, cuts the rest; resolves when all are gone. Idempotent. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Longest time between two looks at the deadlines; short deadlines are looked at more often. */
const sweepMs = 1_000;
const backlogCount = 4096;
/** Probes of the kernel find clients that vanished without a FIN. */
const keepAliveProbeMs = 30_000;

/**
 * Makes a server that splices each client connection to the upstream at HTTP message boundaries.
 * @param upstream unix socket path to forward to, asked for each request; undefined while there is none
 * @throws OptionError (CELLKIT_SPLICE_OPTION)
 */
export function createSpliceServer(
  upstream: () => string | undefined,
  options: SpliceServerOptions = {},
): SpliceServer {
  return new NetSpliceServer(upstream, options);
}

class NetSpliceServer implements SpliceServer, ConnectionHost {
  readonly options;
  readonly upstream: () => string | undefined;
  readonly totals: SpliceTotals = {
    connections: 0,
    forwarded: 0,
    local: 0,
    refused: 0,
    malformed: 0,
    timedOut: 0,
    unavailable: 0,
    lost: 0,
    upgraded: 0,
  };
  readonly readBuffer = new ReadBuffer();
  draining = false;
  socketClose: CloseReason | undefined;
  readonly #server: Server;
  readonly #connections = new Set<HostedConnection>();
  #inFlight = 0;
  #sockets = 0;
  #waiting: (() => void)[] = [];
  #sweep: NodeJS.Timeout | undefined;
  #closed: Promise<void> | undefined;

  constructor(upstream: () => string | undefined, options: SpliceServerOptions) {
    this.upstream = upstream;
    this.options = resolveOptions(options);
    this.#server = createServer(
      { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: keepAliveProbeMs },
      (client) => this.#accept(client),
    );
  }

  readonly nowMs = (): number => performance.now();

  listen(host: string, port: number): Promise<{ host: string; port: number }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ host: string; port: number }>();
    const fail = (cause: Error) => reject(new ListenError(host, port, { cause }));
    this.#server.once("error", fail);
    this.#server.listen({ host, port, backlog: backlogCount }, () => {
      this.#server.off("error", fail);
      // After a successful listen only accept() fails (no descriptors left); the listener goes on.
      this.#server.on("error", () => undefined);
      const { idleTimeoutMs, headTimeoutMs, drainHeadTimeoutMs } = this.options;
      const shortestMs = Math.min(idleTimeoutMs, headTimeoutMs, drainHeadTimeoutMs);
      this.#sweep = setInterval(() => this.#expire(), Math.max(1, Math.min(sweepMs, shortestMs / 4)));
      const address = this.#server.address();
      resolve({ host, port: typeof address === "object" && address !== null ? address.port : port });
    });
    return promise;
  }

  drain(): void {
    if (this.draining) return;
    this.draining = true;
    for (const connection of this.#connections) connection.drain();
  }

  closeSockets(code: number, reason: string): void {
    closeFrame(code, reason);
    this.socketClose = { code, reason };
    for (const connection of this.#connections) connection.closeSocket(this.socketClose);
  }

  finished({ signal }: { signal?: AbortSignal } = {}): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    if (signal?.aborted) reject(signal.reason);
    else if (this.#isQuiet()) resolve();
    else {
      const abort = () => reject(signal?.reason);
      signal?.addEventListener("abort", abort, { once: true });
      this.#waiting.push(() => {
        signal?.removeEventListener("abort", abort);
        resolve();
      });
    }
    return promise;
  }

  counts(): SpliceCounts {
    return { connections: this.#connections.size, inFlight: this.#inFlight, sockets: this.#sockets };
  }

  close(): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      this.#server.close(() => {
        clearInterval(this.#sweep);
        resolve();
      });
      for (const connection of this.#connections) connection.stop();
    });
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  countInFlight(step: 1 | -1): void {
    this.#inFlight += step;
    this.#settle();
  }

  countSocket(step: 1 | -1): void {
    this.#sockets += step;
    this.#settle();
  }

  closed(connection: HostedConnection): void {
    this.#connections.delete(connection);
  }

  #accept(client: Socket): void {
    this.totals.connections += 1;
    this.#connections.add(new Connection(client, this));
  }

  #expire(): void {
    const nowMs = this.nowMs();
    for (const connection of this.#connections) connection.expire(nowMs);
  }

  #isQuiet(): boolean {
    return this.#inFlight === 0 && this.#sockets === 0;
  }

  #settle(): void {
    if (this.#waiting.length === 0 || !this.#isQuiet()) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
