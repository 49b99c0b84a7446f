// A TCP connection to a peer, and the first head that comes on it.

import { connect, type Socket } from "node:net";
import { type AnswerHead, AnswerHeadReader } from "./core/answer-head.ts";
import { PeerUnreachableError } from "./errors.ts";

/** Where a node's internal listener is. */
export interface PeerAddress {
  readonly host: string;
  readonly port: number;
}

/** `host:port`, an IPv6 address in brackets. */
export function formatAddress({ host, port }: PeerAddress): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * Connects within the time.
 * @throws PeerUnreachableError (CELLKIT_PEER_UNREACHABLE), the signal's reason
 */
export function connectTcp(address: PeerAddress, timeoutMs: number, signal?: AbortSignal): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  if (signal?.aborted) return Promise.reject(signal.reason);
  const { host, port } = address;
  const where = formatAddress(address);
  let socket: Socket;
  try {
    socket = connect({ host, port, allowHalfOpen: true, noDelay: true });
  } catch (cause) {
    // A host or port that cannot be: Node throws at once, and nothing was connected.
    const reason = cause instanceof Error && "code" in cause ? String(cause.code) : "connect failed";
    return Promise.reject(new PeerUnreachableError(where, reason, { cause }));
  }
  const settled = () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
    socket.off("error", failed);
  };
  const fail = (error: unknown) => {
    settled();
    socket.on("error", () => undefined);
    socket.destroy();
    reject(error);
  };
  const failed = (cause: NodeJS.ErrnoException) =>
    fail(new PeerUnreachableError(where, cause.code ?? "connect failed", { cause }));
  const abort = () => fail(signal?.reason);
  const timer = setTimeout(
    () => fail(new PeerUnreachableError(where, `no connection within ${timeoutMs} ms`)),
    timeoutMs,
  );
  signal?.addEventListener("abort", abort, { once: true });
  socket.once("error", failed);
  socket.once("connect", () => {
    settled();
    resolve(socket);
  });
  return promise;
}

/** A head, and the bytes that came with it. */
export interface HeadAndRest {
  head: AnswerHead;
  rest: Uint8Array;
}

/**
 * Reads up to the end of the first head (its empty line included) and pauses the connection there.
 * @param where the peer's address, for messages
 * @throws TunnelHeadError (CELLKIT_PEER_TUNNEL_HEAD) for what is no head of 16 KiB at most, PeerUnreachableError (CELLKIT_PEER_UNREACHABLE) when
 *   the connection ends or the time is over, the signal's reason; the connection is then destroyed
 */
export function readHead(
  socket: Socket,
  where: string,
  { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal | undefined },
): Promise<HeadAndRest> {
  const { promise, resolve, reject } = Promise.withResolvers<HeadAndRest>();
  const reader = new AnswerHeadReader();
  const settled = () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
    socket.off("data", read).off("end", ended).off("close", ended).off("error", failed);
  };
  const fail = (error: unknown) => {
    settled();
    socket.on("error", () => undefined);
    socket.destroy();
    reject(error);
  };
  const read = (chunk: Buffer) => {
    try {
      const answer = reader.push(chunk);
      if (answer === undefined) return;
      settled();
      socket.pause();
      resolve(answer);
    } catch (error) {
      fail(error);
    }
  };
  const ended = () => fail(new PeerUnreachableError(where, "closed before an answer"));
  const failed = (cause: NodeJS.ErrnoException) =>
    fail(new PeerUnreachableError(where, `${cause.code ?? "failed"} before an answer`, { cause }));
  const abort = () => fail(signal?.reason);
  const timer = setTimeout(
    () => fail(new PeerUnreachableError(where, `no answer within ${timeoutMs} ms`)),
    timeoutMs,
  );
  if (signal?.aborted) {
    abort();
    return promise;
  }
  signal?.addEventListener("abort", abort, { once: true });
  socket.on("data", read).on("end", ended).on("close", ended).on("error", failed);
  return promise;
}
