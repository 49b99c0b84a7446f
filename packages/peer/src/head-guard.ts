// What a listener holds for connections that have proven nothing yet: bounded in number and in time.

import type { Server } from "node:http";
import type { Socket } from "node:net";
import { performance } from "node:perf_hooks";

/** Bounds of {@link guardHeads}. */
export interface HeadGuardOptions {
  /**
   * How long the first request head of a connection may take from its acceptance; a peer listener gives as much to the
   * body of a cancellation. @default 10000
   */
  headTimeoutMs?: number;
  /**
   * Connections without a complete head at the same time; one more cuts the oldest, so that a flood of silent
   * connections does not keep a peer out that sends its head at once. @default 1024
   */
  halfOpenCount?: number;
}

/** A guard in force. */
export interface HeadGuard {
  /** Connections that have not sent a complete head. */
  readonly halfOpenCount: number;
  /** Takes the guard off; connections stay. Idempotent. */
  close(): void;
}

const defaultHeadTimeoutMs = 10_000;
const defaultHalfOpenCount = 1024;

/**
 * Bounds the connections of an HTTP server that have not sent a request head: nothing is authenticated before that.
 * Later heads of a kept connection are bounded by the server's own `headersTimeout`.
 */
export function guardHeads(server: Server, options: HeadGuardOptions = {}): HeadGuard {
  const { headTimeoutMs = defaultHeadTimeoutMs, halfOpenCount = defaultHalfOpenCount } = options;
  /** In the order of acceptance, so the first is the oldest. */
  const halfOpen = new Map<Socket, number>();
  const sweepMs = Math.max(1, Math.min(1000, headTimeoutMs / 4));
  let sweep: NodeJS.Timeout | undefined;

  const settle = (socket: Socket) => {
    halfOpen.delete(socket);
    if (halfOpen.size > 0) return;
    clearInterval(sweep);
    sweep = undefined;
  };
  const cutLate = () => {
    const nowMs = performance.now();
    for (const [socket, deadlineMs] of halfOpen) {
      if (deadlineMs > nowMs) return;
      settle(socket);
      socket.destroy();
    }
  };
  const accepted = (socket: Socket) => {
    halfOpen.set(socket, performance.now() + headTimeoutMs);
    socket.once("close", () => settle(socket));
    sweep ??= setInterval(cutLate, sweepMs).unref();
    if (halfOpen.size <= halfOpenCount) return;
    const [oldest] = halfOpen.keys();
    if (oldest === undefined) return;
    settle(oldest);
    oldest.destroy();
  };
  const headCame = ({ socket }: { socket: Socket }) => settle(socket);

  server.prependListener("connection", accepted);
  server.prependListener("request", headCame);
  // A listener for upgrades changes what the server does with one, so the guard adds its own only beside another.
  if (server.listenerCount("upgrade") > 0) server.prependListener("upgrade", headCame);
  return {
    get halfOpenCount() {
      return halfOpen.size;
    },
    close() {
      for (const event of ["connection", "request", "upgrade"] as const) {
        server.removeListener(event, event === "connection" ? accepted : headCame);
      }
      clearInterval(sweep);
      sweep = undefined;
      halfOpen.clear();
    },
  };
}
