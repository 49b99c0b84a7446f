// Every error that this package makes. Match on `code`, not on the class: two copies of a package in one process
// have different classes.
import type { Attempt } from "./attempts.ts";

/** What every error of a {@link Fleet} or a {@link CellSocket} has in common. */
export abstract class FleetError extends Error {
  /** Stable, `CELLKIT_CLIENT_<WHAT>`; see the table in the README. */
  abstract readonly code: string;
  /** What was tried before the error, oldest first; empty when nothing was. */
  readonly attempts: readonly Attempt[];

  constructor(message: string, attempts: readonly Attempt[] = [], options?: ErrorOptions) {
    super(message, options);
    this.attempts = attempts;
  }
}

/** One line about an attempt, for messages: the node, what happened, the reason as far as it is known. */
function tellLast(attempts: readonly Attempt[]): string {
  const last = attempts.at(-1);
  if (last === undefined) return "no attempt was made";
  const reason = last.error === undefined ? "" : ` (${last.error.message || last.error.name})`;
  return `attempt ${last.n} at ${last.node} ended as ${last.class}${reason}`;
}

/**
 * The request may or may not have run, and was not sent again because that could run it twice. Ask the application
 * whether it ran, or make such calls repeatable: an idempotent method, `idempotent: true`, or an `idempotencyKey`
 * that the application honours.
 */
export class AmbiguousRequestError extends FleetError {
  override readonly name = "AmbiguousRequestError";
  readonly code = "CELLKIT_CLIENT_AMBIGUOUS";

  constructor(method: string, path: string, attempts: readonly Attempt[], options?: ErrorOptions) {
    super(
      `${method} ${path} may or may not have run: ${tellLast(attempts)}. It was not repeated, since ${method} is not ` +
        "idempotent; pass idempotencyKey (or idempotent: true, if running it twice is harmless) to allow that",
      attempts,
      options,
    );
  }
}

/** The last permitted attempt failed without any response. `cause` is that attempt's error. */
export class AttemptsExhaustedError extends FleetError {
  override readonly name = "AttemptsExhaustedError";
  readonly code = "CELLKIT_CLIENT_ATTEMPTS";

  constructor(method: string, path: string, attempts: readonly Attempt[], options?: ErrorOptions) {
    super(
      `${method} ${path} got no response in ${attempts.length} attempts: ${tellLast(attempts)}. ` +
        "Are the nodes running, and reachable from here?",
      attempts,
      options,
    );
  }
}

/** A further attempt was safe, but the fleet's retry budget is empty: too many calls fail at once for retries to help. */
export class RetryBudgetError extends FleetError {
  override readonly name = "RetryBudgetError";
  readonly code = "CELLKIT_CLIENT_BUDGET";

  constructor(method: string, path: string, attempts: readonly Attempt[], options?: ErrorOptions) {
    super(
      `${method} ${path} was not tried again because the retry budget is empty: ${tellLast(attempts)}. ` +
        "Look at the fleet first; retry.budget sets the budget",
      attempts,
      options,
    );
  }
}

/** No response headers within `deadlineMs`. The request may still be running if an attempt had been sent. */
export class DeadlineExceededError extends FleetError {
  /** As the platform names it, so that code written for `AbortSignal.timeout()` works. */
  override readonly name = "TimeoutError";
  readonly code = "CELLKIT_CLIENT_DEADLINE";

  constructor(method: string, path: string, deadlineMs: number, attempts: readonly Attempt[]) {
    super(
      `${method} ${path} had no response headers after ${deadlineMs} ms: ${tellLast(attempts)}. ` +
        "retry.deadlineMs sets the time",
      attempts,
    );
  }
}

/** The endpoint source named no node within `waitForNodeMs`. */
export class NoEndpointError extends FleetError {
  override readonly name = "NoEndpointError";
  readonly code = "CELLKIT_CLIENT_NO_ENDPOINT";

  constructor(waitedMs: number, options?: ErrorOptions) {
    super(
      `the endpoint source named no node within ${waitedMs} ms; check the name or the list given as endpoints`,
      [],
      options,
    );
  }
}

/** A further attempt was safe, but the one-shot body is used up and there is no response to return. */
export class BodyNotReplayableError extends FleetError {
  override readonly name = "BodyNotReplayableError";
  readonly code = "CELLKIT_CLIENT_BODY";

  constructor(method: string, path: string, attempts: readonly Attempt[], options?: ErrorOptions) {
    super(
      `${method} ${path} could be repeated, but its body is consumed: ${tellLast(attempts)}. ` +
        "Pass a string, a buffer, a Blob, or replay: () => body, or raise retry.replayBufferBytes",
      attempts,
      options,
    );
  }
}

/** An option that cannot work. Thrown where it is given, never later. */
export class ConfigurationError extends FleetError {
  override readonly name = "ConfigurationError";
  readonly code = "CELLKIT_CLIENT_CONFIG";

  constructor(message: string, options?: ErrorOptions) {
    super(message, [], options);
  }
}

/** An upgrade or a close that a further try cannot mend. */
export class SocketFatalError extends FleetError {
  override readonly name = "SocketFatalError";
  readonly code = "CELLKIT_CLIENT_WS_FATAL";
  /** HTTP status of the refused upgrade. */
  readonly status: number | undefined;
  /** The refusal's body, at most 4 KiB. */
  readonly body: string | undefined;
  /** Close code of the connection, when it had been open. */
  readonly closeCode: number | undefined;

  constructor(
    message: string,
    details: { status?: number; body?: string; closeCode?: number } = {},
    options?: ErrorOptions,
  ) {
    super(message, [], options);
    this.status = details.status;
    this.body = details.body;
    this.closeCode = details.closeCode;
  }
}

/** `send()` found the queue full and its overflow policy is `throw`. */
export class SendBufferFullError extends FleetError {
  override readonly name = "SendBufferFullError";
  readonly code = "CELLKIT_CLIENT_WS_BUFFER";

  constructor(queuedCount: number, queuedBytes: number) {
    super(
      `the send queue is full (${queuedCount} messages, ${queuedBytes} bytes); await ready() before sending more, ` +
        "or choose another queue.overflow",
    );
  }
}

/** `send()` was given a message above `maxSendBytes`. */
export class MessageTooLargeError extends FleetError {
  override readonly name = "MessageTooLargeError";
  readonly code = "CELLKIT_CLIENT_WS_TOO_LARGE";

  constructor(sizeBytes: number, maxSendBytes: number) {
    super(`the message has ${sizeBytes} bytes, at most ${maxSendBytes} are allowed (maxSendBytes)`);
  }
}

/** This Node is older than undici allows; thrown while the package is imported. */
export class UnsupportedNodeError extends FleetError {
  override readonly name = "UnsupportedNodeError";
  readonly code = "CELLKIT_CLIENT_NODE_VERSION";

  constructor(version: string, oldest: string, options?: ErrorOptions) {
    super(
      `@cellkit/client needs Node ${oldest} or later, and this is ${version}: run it on a newer one`,
      [],
      options,
    );
  }
}
