import { setTimeout as pause } from "node:timers/promises";
import type { z } from "zod";
import { acceptRecord } from "./accept-record.ts";
import { auditSchema, type ExecutionAudit } from "./core/audit.ts";
import type { ClaimedIds } from "./core/claimed-ids.ts";
import { inLightOf } from "./core/contradiction.ts";
import {
  boundElsewhere,
  type CoursePlan,
  type CoursePurpose,
  callError,
  type Knowledge,
  learn,
  nextStep,
  type Outcome,
  tellsOfClaim,
} from "./core/course.ts";
import { isExecutionId } from "./core/execution-id.ts";
import { met, nothingMet } from "./core/mutual-trust.ts";
import { type ExecutionRecord, recordSchema, type TerminalRecord } from "./core/record.ts";
import { shown } from "./core/shown.ts";
import type { Expectation } from "./core/terminal-record.ts";
import { type Trouble, unusableTrouble } from "./core/trouble.ts";
import { CallAbortedError, CallError, ExecutionIdError } from "./errors.ts";
import { type Called, callRouter } from "./router-calls.ts";
import { checkedMs, type ResolvedRouterOptions } from "./router-options.ts";

/** For one call. */
export interface CallOptions {
  /** Ends the call with {@link CallAbortedError}. What was sent goes on. */
  readonly signal?: AbortSignal | undefined;
}

/** For calls that go on until something is settled. */
export interface WaitOptions extends CallOptions {
  /** No try starts later than this, in milliseconds from now. Default: see the client's options. */
  readonly timeoutMs?: number | undefined;
}

/** How a cancellation ended: with a final record, or because no router knows the id. */
export type CancelEnd =
  | { readonly kind: "terminal"; readonly record: TerminalRecord }
  | { readonly kind: "never-submitted" };

/** Without a request it is not known how long a run may take: the reference's default. */
const unknownRunMs = 90_000;
/** A last try that begins at the deadline gets this long. */
const lastTryMs = 1_000;

/** What all handles of one client share. */
export interface SharedByHandles extends ResolvedRouterOptions {
  /** The ids that a router was said to have bound. */
  readonly claimed: ClaimedIds;
}

/** An execution by its id. Holds no connection and no timer; make as many as you like, also after a restart. */
export class Run {
  readonly id: string;
  readonly #options: SharedByHandles;
  readonly #expected: Expectation;
  #known: Knowledge;

  /** @internal made by {@link RouterClient} */
  constructor(options: SharedByHandles, id: string, known: Knowledge, expected: Expectation = {}) {
    if (!isExecutionId(id)) {
      throw new ExecutionIdError(
        `${shown(id)} is none that a router takes (1 to 512 of A–Z a–z 0–9 . _ -, and neither . nor ..); make it with executionId()`,
      );
    }
    this.id = id;
    this.#options = options;
    this.#known = known;
    this.#expected = expected;
  }

  /**
   * The record as it is now: one call.
   *
   * @throws {@link CallError}, {@link CallAbortedError}
   */
  get(options: CallOptions = {}): Promise<ExecutionRecord> {
    return this.#once("GET", "", recordSchema, options);
  }

  /**
   * The audit: one call. Where the owner has the run and no audit, that is `CELLKIT_EXECUTION_NO_AUDIT`, or behind a router that
   * makes one answer of all that an owner does not know, `CELLKIT_EXECUTION_OWNER_LOST`.
   *
   * @throws {@link CallError}, {@link CallAbortedError}
   */
  audit(options: CallOptions = {}): Promise<ExecutionAudit> {
    return this.#once("GET", "/audit", auditSchema, options);
  }

  /**
   * Asks once for the end. A record with phase `Cancelling` means that the work is still being taken down.
   *
   * @throws {@link CallError}, {@link CallAbortedError}
   */
  cancel(options: CallOptions = {}): Promise<ExecutionRecord> {
    return this.#once("POST", "/cancel", recordSchema, options);
  }

  /**
   * Waits for the final record, whatever it is: attaches to the run, however often and from whichever process. A run that a
   * router has never claimed is an error (`CELLKIT_EXECUTION_UNKNOWN_EXECUTION`). Default time: what the request allows, or 90 s
   * when it is not known, plus `resultGraceMs`. Time out or abort do not cancel the run.
   *
   * @throws {@link DeadlineError}, {@link CallError}, {@link CallAbortedError}, {@link RecordRejectedError}
   */
  async result(options: WaitOptions = {}): Promise<TerminalRecord> {
    const allowedMs = Number(this.#expected.request?.capabilities.timeoutMs ?? unknownRunMs);
    const record = await this.course(
      "result",
      options,
      allowedMs + this.#options.resultGraceMs,
      (timeoutMs) => this.#call("GET", "", recordSchema, timeoutMs, options.signal),
    );
    return acceptRecord(record, this.id, this.#expected);
  }

  /**
   * Asks for the end until it has come, or until it is known that no router has the id. A submission that is still on its
   * way can arrive after that.
   *
   * @throws {@link DeadlineError}, {@link CallError}, {@link CallAbortedError}, {@link RecordRejectedError}
   */
  async cancelUntilTerminal(options: WaitOptions = {}): Promise<CancelEnd> {
    try {
      const record = await this.course("cancel", options, this.#options.cancelTimeoutMs, (timeoutMs) =>
        this.#call("POST", "/cancel", recordSchema, timeoutMs, options.signal),
      );
      return { kind: "terminal", record: acceptRecord(record, this.id, this.#expected) };
    } catch (error) {
      if (isNeverSubmitted(error)) return { kind: "never-submitted" };
      throw error;
    }
  }

  /** Tries until something is settled. */
  protected async course(
    purpose: CoursePurpose,
    { signal, timeoutMs: given }: WaitOptions,
    standardMs: number,
    attempt: (timeoutMs: number) => Promise<Called<ExecutionRecord>>,
  ): Promise<ExecutionRecord> {
    const { pace, callTimeoutMs } = this.#options;
    const inMs = given === undefined ? standardMs : checkedMs("timeoutMs", given);
    const plan: CoursePlan = { purpose, id: this.id, pace, deadlineMs: performance.now() + inMs };
    let trust = nothingMet;
    for (let tries = 1; ; tries++) {
      const leftMs = Math.max(plan.deadlineMs - performance.now(), lastTryMs);
      const outcome = await this.#attempt(purpose, signal, () => attempt(Math.min(callTimeoutMs, leftMs)));
      const nowMs = performance.now();
      trust = met(trust, outcome, nowMs);
      const step = nextStep(plan, this.#known, outcome, { tries, nowMs, random: Math.random(), trust });
      if (step.kind === "fail") throw step.error;
      if (step.kind === "settled") return step.record;
      await this.#pause(step.forMs, signal);
    }
  }

  async #attempt(
    purpose: CoursePurpose,
    signal: AbortSignal | undefined,
    make: () => Promise<Called<ExecutionRecord>>,
  ): Promise<Outcome> {
    this.#throwIfAborted(signal);
    const called = await make();
    const outcome: Outcome =
      called.kind === "value"
        ? { kind: "record", record: called.value }
        : { kind: "trouble", trouble: this.#judge(called.trouble, purpose) };
    this.#learn(outcome, purpose);
    if (outcome.kind === "trouble") this.#throwIfAborted(signal);
    return outcome;
  }

  async #once<S extends z.ZodType<{ requestId: string }>>(
    method: "GET" | "POST",
    rest: string,
    schema: S,
    { signal }: CallOptions,
  ): Promise<z.output<S>> {
    this.#throwIfAborted(signal);
    const called = await this.#call(method, rest, schema, this.#options.callTimeoutMs, signal);
    const purpose = purposeOf(method);
    if (called.kind === "value") {
      this.#learn({ kind: "record" }, purpose);
      return called.value;
    }
    const trouble = this.#judge(called.trouble, purpose);
    this.#learn({ kind: "trouble", trouble }, purpose);
    this.#throwIfAborted(signal);
    throw callError(trouble, this.#known);
  }

  async #call<S extends z.ZodType<{ requestId: string }>>(
    method: "GET" | "POST",
    rest: string,
    schema: S,
    timeoutMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Called<z.output<S>>> {
    const path = `/v1/executions/${this.id}${rest}`;
    const call = { purpose: purposeOf(method), method, path, timeoutMs, signal };
    return ofThisRun(this.id, await callRouter(this.#options, call, schema));
  }

  /** The trouble that an answer is beside what this handle, and any other of its client, was told before. */
  #judge(trouble: Trouble, purpose: CoursePurpose): Trouble {
    const isUnknown = trouble.code === "CELLKIT_EXECUTION_UNKNOWN_EXECUTION";
    if (isUnknown && this.#options.claimed.has(this.id)) this.#known = boundElsewhere(this.#known);
    return inLightOf(this.#known, trouble, purpose, this.id);
  }

  #learn(outcome: Parameters<typeof learn>[1], purpose: CoursePurpose): void {
    this.#known = learn(this.#known, outcome, purpose);
    if (tellsOfClaim(this.#known, outcome)) this.#options.claimed.add(this.id);
  }

  async #pause(forMs: number, signal: AbortSignal | undefined): Promise<void> {
    try {
      await pause(forMs, undefined, signal === undefined ? {} : { signal });
    } catch {
      this.#throwIfAborted(signal);
    }
  }

  #throwIfAborted(signal: AbortSignal | undefined): void {
    if (signal?.aborted === true) throw new CallAbortedError(this.#known.sent, { cause: signal.reason });
  }
}

/** A run is read by GET, and cancelled by POST. */
function purposeOf(method: "GET" | "POST"): CoursePurpose {
  return method === "GET" ? "result" : "cancel";
}

/** An answer about another id is no answer. */
export function ofThisRun<T extends { requestId: string }>(id: string, called: Called<T>): Called<T> {
  if (called.kind !== "value" || called.value.requestId === id) return called;
  return {
    kind: "trouble",
    trouble: unusableTrouble(200, `is about ${shown(called.value.requestId)} in place of ${id}`),
  };
}

/** No router knows the id, and none has ever given a record of it. */
function isNeverSubmitted(error: unknown): boolean {
  return (
    error instanceof CallError &&
    error.code === "CELLKIT_EXECUTION_UNKNOWN_EXECUTION" &&
    error.next !== "operator"
  );
}
