import type { RequestProblem } from "./core/request-problems.ts";
import type { CallErrorCode, Next, Sent, Trouble } from "./core/trouble.ts";

/**
 * Base of every error of this package; match on `code`, since two copies of a package break `instanceof`. Each says whether
 * a dispatcher may have got the request, and what may be done next.
 */
export abstract class ExecutionError extends Error {
  /** Stable and unique per cause: `CELLKIT_EXECUTION_…`. */
  abstract readonly code: string;
  /**
   * Whether a dispatcher may have got the execution. `no`: none has, or it was turned away unread. `maybe`: nothing tells.
   * `yes`: a dispatcher read it and answered. It is what is known of all tries of a submission, and of what others may have
   * sent: so a read of an id by which somebody may have submitted is `maybe` until a router says more. Of a prewarm it tells
   * about that call.
   */
  readonly sent: Sent = "no";
  /**
   * `same-id`: the same call may be made again, with the same id and the same bytes. `never`: this call cannot succeed;
   * change what the message names. `operator`: somebody has to look; a new id could run the work twice.
   */
  readonly next: Next = "never";
  /** The status that was answered; undefined without an answer. */
  readonly status: number | undefined = undefined;
  /** The text that the router or dispatcher answered, at most 200 characters. It may quote the request: do not log it blindly. */
  readonly routerText: string | undefined = undefined;
}

/** An option or argument is outside its range. Correct the value named in the message. */
export class ExecutionOptionError extends ExecutionError {
  override readonly name = "ExecutionOptionError";
  readonly code = "CELLKIT_EXECUTION_OPTION";
  readonly option: string;

  constructor(option: string, problem: string, options?: ErrorOptions) {
    super(`${option} ${problem}`, options);
    this.option = option;
  }
}

/** A text is no JSON as the execution plane reads it. The message holds no part of it. */
export class JsonError extends ExecutionError {
  override readonly name = "JsonError";
  readonly code = "CELLKIT_EXECUTION_JSON";

  constructor(problem: string, options?: ErrorOptions) {
    super(`the text ${problem}; write one JSON value in UTF-8, each member once`, options);
  }
}

/** An execution id is none that the router takes, or cannot be made from these parts. Nothing was sent. */
export class ExecutionIdError extends ExecutionError {
  override readonly name = "ExecutionIdError";
  readonly code = "CELLKIT_EXECUTION_ID";

  constructor(problem: string, options?: ErrorOptions) {
    super(`the execution id ${problem}`, options);
  }
}

/** A request would be refused by every dispatcher, and its id would be used up. Nothing was sent: correct the request. */
export class ExecutionRequestError extends ExecutionError {
  override readonly name = "ExecutionRequestError";
  readonly code = "CELLKIT_EXECUTION_REQUEST";
  /** Which rules were broken, in a dispatcher's order; empty when the request does not even have the shape of one. */
  readonly problems: readonly RequestProblem[];

  constructor(problem: string, problems: readonly RequestProblem[] = [], options?: ErrorOptions) {
    super(`the request was not sent: ${problem}; correct it`, options);
    this.problems = problems;
  }
}

/** A call did not get what it asked for; `code` says why. */
export class CallError extends ExecutionError {
  override readonly name = "CallError";
  readonly code: CallErrorCode;
  override readonly sent: Sent;
  override readonly next: Next;
  override readonly status: number | undefined;
  override readonly routerText: string | undefined;
  /** `reason` of a dispatcher's refusal, such as `at_capacity`; undefined when it gave none. */
  readonly reason: string | undefined;
  /** `detail` of a dispatcher's refusal. */
  readonly detail: string | undefined;
  /** The problems that a dispatcher listed; empty when there were none. */
  readonly problems: readonly { readonly code: string; readonly field: string }[];

  constructor(trouble: Trouble, options?: ErrorOptions) {
    const { what, advice, cause } = trouble;
    super(`${what}; ${advice}`, options ?? (cause === undefined ? undefined : { cause }));
    this.code = trouble.code;
    this.sent = trouble.sent;
    this.next = trouble.next;
    this.status = trouble.status;
    this.routerText = trouble.routerText;
    this.reason = trouble.reason;
    this.detail = trouble.detail;
    this.problems = trouble.problems ?? [];
  }
}

/** Time ran out. Message and `cause` tell what the last try met; whatever was submitted goes on, and can be attached to again. */
export class DeadlineError extends ExecutionError {
  override readonly name = "DeadlineError";
  readonly code = "CELLKIT_EXECUTION_DEADLINE";
  override readonly sent: Sent;
  override readonly next: Next;

  constructor(what: string, known: { sent: Sent; next: Next }, options?: ErrorOptions) {
    super(
      `${what}; ${known.next === "operator" ? "let an operator look" : "then ask again under the same id"}`,
      options,
    );
    this.sent = known.sent;
    this.next = known.next;
  }
}

/** The caller's signal ended a call; `cause` is its reason. */
export class CallAbortedError extends ExecutionError {
  override readonly name = "CallAbortedError";
  readonly code = "CELLKIT_EXECUTION_ABORTED";
  override readonly sent: Sent;
  override readonly next = "same-id";

  constructor(sent: Sent, options?: ErrorOptions) {
    super("the call was given up by its caller; what was sent goes on under the same id", options);
    this.sent = sent;
  }
}

/**
 * A final record does not belong to the request that was sent, or contradicts itself. Its result must not be used; an
 * operator has to compare it with the audit.
 */
export class RecordRejectedError extends ExecutionError {
  override readonly name = "RecordRejectedError";
  readonly code = "CELLKIT_EXECUTION_RECORD_REJECTED";
  override readonly sent = "yes";
  override readonly next = "operator";
  /** Each rule that was broken, in words. */
  readonly faults: readonly string[];

  constructor(id: string, faults: readonly string[], options?: ErrorOptions) {
    super(
      `the final record of ${id} is not accepted: ${faults.join("; ")}; let an operator read its audit`,
      options,
    );
    this.faults = faults;
  }
}
