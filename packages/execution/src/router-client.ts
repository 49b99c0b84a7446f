import type { ExecutionAudit } from "./core/audit.ts";
import { ClaimedIds } from "./core/claimed-ids.ts";
import { callError, nothingKnown, perhapsSent } from "./core/course.ts";
import type { ExecutionRequestInput } from "./core/execution-request.ts";
import { type PrewarmObservation, prewarmSchema } from "./core/prewarm.ts";
import type { ExecutionRecord } from "./core/record.ts";
import { CallAbortedError } from "./errors.ts";
import { checkedPin, freezeBytes, freezeRequest } from "./freeze-request.ts";
import { callRouter } from "./router-calls.ts";
import { type RouterClientOptions, resolveRouterOptions } from "./router-options.ts";
import { type CallOptions, type CancelEnd, Run, type SharedByHandles, type WaitOptions } from "./run.ts";
import { type PrepareOptions, Submission } from "./submission.ts";

/** A request to build, or the exact bytes of one. */
export type RequestSource = ExecutionRequestInput | Uint8Array | string;

/**
 * Submits executions through a router, each at most once, and reads what became of them.
 *
 * Every call has a connection of its own and reads its files again (token, CA, client certificate), so a client holds nothing
 * that would have to be closed. It remembers which ids it was told are bound, the latest 16,384: use one client for one router, and
 * a read or cancellation through any handle knows a lost ledger.
 */
export class RouterClient {
  readonly #options: SharedByHandles;

  /** @throws {@link ExecutionOptionError} (`CELLKIT_EXECUTION_OPTION`) */
  constructor(options: RouterClientOptions) {
    this.#options = { ...resolveRouterOptions(options), claimed: new ClaimedIds() };
  }

  /**
   * Freezes a request into bytes without sending it, so that it can be kept before the first try. A request object is
   * checked by all rules of a dispatcher; bytes only by those of a router, and are sent as they are.
   * After a restart, prepare the kept bytes (or set `resumed`), so that no error calls `no` what was sent before it.
   *
   * @throws {@link ExecutionRequestError}, {@link ExecutionIdError}, {@link JsonError}, {@link ExecutionOptionError}
   */
  prepare(source: RequestSource, { pin, resumed }: PrepareOptions = {}): Submission {
    const isBytes = typeof source === "string" || source instanceof Uint8Array;
    const frozen = isBytes ? freezeBytes(source, pin) : freezeRequest(source, pin);
    return new Submission(this.#options, frozen, (resumed ?? isBytes) ? perhapsSent : nothingKnown);
  }

  /**
   * {@link prepare} and {@link Submission.send}: comes back when a router has a record of it. Use the two when the bytes
   * have to outlive a failure.
   *
   * @throws what those two throw
   */
  async submit(source: RequestSource, options: PrepareOptions & WaitOptions = {}): Promise<Submission> {
    const submission = this.prepare(source, options);
    await submission.send(options);
    return submission;
  }

  /**
   * The run with an id that was submitted, by whichever process. Calls nothing. Its results are not compared with a request;
   * {@link prepare} with the kept bytes gives one whose are.
   *
   * @throws {@link ExecutionIdError}
   */
  attach(id: string): Run {
    return new Run(this.#options, id, perhapsSent);
  }

  /** {@link Run.get} of an id. */
  async get(id: string, options: CallOptions = {}): Promise<ExecutionRecord> {
    return this.attach(id).get(options);
  }

  /** {@link Run.audit} of an id. */
  async audit(id: string, options: CallOptions = {}): Promise<ExecutionAudit> {
    return this.attach(id).audit(options);
  }

  /** {@link Run.cancel} of an id. */
  async cancel(id: string, options: CallOptions = {}): Promise<ExecutionRecord> {
    return this.attach(id).cancel(options);
  }

  /** {@link Run.cancelUntilTerminal} of an id. */
  async cancelUntilTerminal(id: string, options: WaitOptions = {}): Promise<CancelEnd> {
    return this.attach(id).cancelUntilTerminal(options);
  }

  /**
   * Asks one dispatcher to prepare what a request needs: one call, nothing runs, and the id is not used up. What comes back
   * is an observation that may be void a moment later.
   *
   * @param pin the dispatcher's origin, exactly as the router's list has it
   * @throws {@link CallError}, {@link CallAbortedError}, and what {@link prepare} throws
   */
  async prewarm(
    source: RequestSource,
    pin: string,
    { signal }: CallOptions = {},
  ): Promise<PrewarmObservation> {
    const { bytes } = this.prepare(source, { pin: checkedPin(pin) });
    const { callTimeoutMs: timeoutMs } = this.#options;
    if (signal?.aborted === true) throw new CallAbortedError("no", { cause: signal.reason });
    const call = {
      purpose: "prewarm",
      method: "POST",
      path: "/v1/artifacts/prewarm",
      body: bytes,
      pin,
      timeoutMs,
      signal,
    } as const;
    const called = await callRouter(this.#options, call, prewarmSchema);
    if (called.kind === "value") return called.value;
    const { trouble } = called;
    if (signal?.aborted) throw new CallAbortedError(trouble.sent, { cause: signal.reason });
    throw callError(trouble, { ...nothingKnown, sent: trouble.sent });
  }
}
