/** Every bound of an edge. Defaults are the original's where it has them. */
export interface EdgeLimits {
  /** A handshake must be done within it. @default 5_000 */
  handshakeTimeoutMs: number;
  /** After it, a request head must be there within it. @default 5_000 */
  headTimeoutMs: number;
  /** A whole request, body and all, must be there within it. @default 15_000 */
  requestTimeoutMs: number;
  /** From a request's head to the last byte of its answer. @default 100_000 */
  answerTimeoutMs: number;
  /** How long a client's connection may stay without a request. @default 60_000 */
  idleTimeoutMs: number;
  /** How long a client that has ended its side is waited with for answers; it may be gone. @default 10_000 */
  halfClosedMs: number;
  /** Client connections served; further ones get 503, and past twice as many nothing. @default 1_024 */
  connectionCount: number;
  /** Requests on one connection that may wait for the one before them; with one more, none of them is served and it ends. @default 16 */
  pipelinedCount: number;
  /** After a refusal, what the client still sends is read for so long, so that no reset destroys the answer. @default 2_000 */
  lingerMs: number;
  /** And at most so many bytes of it. @default 1_048_576 */
  lingerBytes: number;
  /** An answer up to so long is held back until it is whole, so that one that breaks off becomes 502. @default 262_144 */
  heldAnswerBytes: number;
  /** @default 5_000 */
  dialTimeoutMs: number;
  /** From a request sent to the head of its answer. @default 90_000 */
  backendHeadTimeoutMs: number;
  /** Without a byte of an answer that has begun. @default 30_000 */
  backendIdleTimeoutMs: number;
  /** Requests at the backend, each on a connection of its own; further ones wait. @default 32 */
  backendConnectionCount: number;
}

/** The bounds with what is given changed. */
export function resolveLimits(given: Partial<EdgeLimits> = {}): EdgeLimits {
  return {
    handshakeTimeoutMs: 5_000,
    headTimeoutMs: 5_000,
    requestTimeoutMs: 15_000,
    answerTimeoutMs: 100_000,
    idleTimeoutMs: 60_000,
    halfClosedMs: 10_000,
    connectionCount: 1_024,
    pipelinedCount: 16,
    lingerMs: 2_000,
    lingerBytes: 1_048_576,
    heldAnswerBytes: 262_144,
    dialTimeoutMs: 5_000,
    backendHeadTimeoutMs: 90_000,
    backendIdleTimeoutMs: 30_000,
    backendConnectionCount: 32,
    ...given,
  };
}
