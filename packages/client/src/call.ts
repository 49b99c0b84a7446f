// One call through a fleet: attempts in a row until one is the caller's. It is the controller that the caller's
// handler holds, so abort, pause and resume reach whichever attempt is alive. What to do next is decided in
// core/retry-plan.ts; here it is done.
import { type Dispatcher, errors } from "undici";
import type { Alarm, AlarmList, Alarms } from "./alarms.ts";
import { type AttemptOwner, AttemptRun } from "./attempt-run.ts";
import { type Attempt, type AttemptSource, callKey } from "./attempts.ts";
import { failureOf, isCallersFault, isOurClosing, retryAfterOf, saysClose } from "./call-failure.ts";
import { classifyFailure, classifyHeld, type Outcome, type OutcomeRules } from "./core/outcome.ts";
import type { RetryBudget } from "./core/retry-budget.ts";
import { planRetry } from "./core/retry-plan.ts";
import { BodyNotReplayableError, DeadlineExceededError, NoEndpointError } from "./errors.ts";
import { events } from "./events.ts";
import type { FleetNode } from "./fleet-node.ts";
import type { FleetNodes } from "./fleet-nodes.ts";
import { HeldResponse } from "./held-response.ts";
import type { FleetDispatchOptions, ResolvedRetry } from "./options.ts";
import { type Prepared, RequestPlan } from "./request-plan.ts";

/** What a call needs of its fleet. */
export interface CallHost {
  readonly nodes: FleetNodes;
  readonly alarms: Alarms;
  readonly budget: RetryBudget | undefined;
  readonly now: () => number;
  readonly random: () => number;
  /** Calls that have no attempt alive, so that a destroyed fleet reaches them. */
  readonly waiting: Set<Call>;
  /** Set when the fleet was destroyed. */
  readonly destroyedBy: Error | undefined;
  onCallEnded(): void;
}

const MAX_ATTEMPTS = 4;
/** With n nodes behind one address each try meets a draining one with probability 1/n. */
const MAX_ATTEMPTS_LOAD_BALANCED = 8;

/** Internal: a call under way. */
export class Call implements AttemptOwner, AttemptSource, Alarm {
  nextAlarm: Alarm | undefined;
  previousAlarm: Alarm | undefined;
  alarmList: AlarmList | undefined;
  alarmAtMs = 0;
  readonly handler: Dispatcher.DispatchHandler;
  readonly method: string;
  readonly path: string;
  readonly rules: OutcomeRules;
  readonly now: () => number;
  readonly #host: CallHost;
  readonly #retry: ResolvedRetry;
  readonly #deadlineMs: number;
  /** Dropped at the end, so that a response does not keep the body of its request. */
  #options: FleetDispatchOptions | undefined;
  #request: RequestPlan | undefined;
  #current: AttemptRun | undefined;
  #past: AttemptRun[] | undefined;
  #tried: Set<FleetNode> | undefined;
  #state: "trying" | "committed" | "ended" = "trying";
  #abortReason: Error | null = null;
  #held: HeldResponse | undefined;
  #freeUsed = false;
  #chargedCount = 0;
  #timer: NodeJS.Timeout | undefined;
  #nodeWait: AbortController | undefined;
  #settledMs = 0;

  constructor(
    host: CallHost,
    options: FleetDispatchOptions,
    handler: Dispatcher.DispatchHandler,
    retry: ResolvedRetry,
    rules: OutcomeRules,
    nowMs: number,
  ) {
    this.#host = host;
    this.#options = options;
    this.handler = handler;
    this.method = options.method;
    this.path = options.path;
    this.#retry = retry;
    this.rules = rules;
    this.now = host.now;
    this.#deadlineMs = retry.deadlineMs === 0 ? Number.POSITIVE_INFINITY : nowMs + retry.deadlineMs;
    this.#request = RequestPlan.for(options, retry);
  }

  start(nowMs: number): void {
    if (events.callStart.hasSubscribers) events.callStart.publish({ method: this.method, path: this.path });
    try {
      this.handler.onRequestStart?.(this, { [callKey]: this });
    } catch (error) {
      this.#settle(error as Error);
    }
    if (this.#state !== "trying") return;
    const node = this.#host.nodes.pick();
    if (node === undefined) void this.#waitForNode(false);
    else this.#attempt(node, nowMs, 0, false);
  }

  // The controller that the caller's handler holds.

  get aborted(): boolean {
    return this.#abortReason !== null;
  }

  get reason(): Error | null {
    return this.#abortReason;
  }

  get paused(): boolean {
    return this.#held?.paused ?? this.#current?.controller?.paused ?? false;
  }

  get rawHeaders(): NonNullable<Dispatcher.DispatchController["rawHeaders"]> | null {
    return this.#current?.controller?.rawHeaders ?? null;
  }

  get rawTrailers(): NonNullable<Dispatcher.DispatchController["rawTrailers"]> | null {
    return this.#current?.controller?.rawTrailers ?? null;
  }

  pause(): void {
    if (this.#held === undefined) this.#current?.controller?.pause();
    else this.#held.pause();
  }

  resume(): void {
    if (this.#held === undefined) this.#current?.controller?.resume();
    else this.#held.resume();
  }

  abort(reason: Error): void {
    if (this.#state === "ended" || this.#abortReason !== null) return;
    this.#abortReason = reason;
    if (this.#state === "trying") {
      this.#cutCurrent(reason);
      this.#settle(reason);
    } else if (this.#held === undefined) {
      this.#current?.controller?.abort(reason);
    } else {
      this.#held.fail(reason);
    }
  }

  /** Everything tried, the live attempt included. */
  get attempts(): readonly Attempt[] {
    const runs = [...(this.#past ?? []), ...(this.#current === undefined ? [] : [this.#current])];
    const wallMs = Date.now() - this.now();
    return runs.map((run) => run.toAttempt(wallMs));
  }

  // What the live attempt reports.

  onHeaders(run: AttemptRun, outcome: Outcome): void {
    this.#learn(run, outcome);
    if (outcome.class !== "answered" && this.#again(run)) {
      run.discard();
      return;
    }
    this.#commit();
    run.pass();
    this.handler.onResponseStart?.(this, run.status ?? 0, run.headers, run.statusText);
  }

  onHeld(run: AttemptRun, error: Error | undefined): void {
    const { status = 503, headers, chunks } = run;
    if (error === undefined) {
      this.#learn(run, classifyHeld(status, headers as never, Buffer.concat(chunks).toString(), this.rules));
    } else {
      // Half a refusal proves nothing.
      run.class = "ambiguous";
      this.#host.nodes.reportFailure(run.node);
    }
    if (run.class !== "answered" && this.#again(run)) return;
    this.#commit();
    this.#held = new HeldResponse(this.handler, this, run, error, (failed) => this.onPassed(run, failed));
    this.#held.start();
  }

  onFailure(run: AttemptRun, error: Error): void {
    if (this.#host.destroyedBy !== undefined) return this.#settle(this.#host.destroyedBy);
    const bodyError = this.#request?.bodyError;
    if (bodyError !== undefined) return this.#settle(bodyError as Error);
    if (isCallersFault(error)) return this.#settle(error);
    const { started, bodySent } = run;
    const failure = { started, bodySent, bodyBytes: this.#request?.bodyBytes ?? 0 };
    run.class = classifyFailure(failure, this.#retry.incompleteUploadSafeBelowBytes);
    if (!isOurClosing(error)) this.#host.nodes.reportFailure(run.node);
    const because = this.#retryOr(run);
    if (because !== undefined) this.#settle(failureOf(because, this, error));
  }

  onPassed(_run: AttemptRun, error: Error | undefined): void {
    this.#end(error);
  }

  /** The deadline, or the time of one attempt. */
  onAlarm(): void {
    const run = this.#current;
    const leftMs = this.#deadlineMs - this.now();
    if (leftMs <= 1 || run === undefined) return this.#miss();
    run.class = run.started ? "ambiguous" : "not-sent";
    run.endedMs = this.now();
    if (this.#again(run)) {
      run.error = new errors.HeadersTimeoutError();
      this.#host.nodes.reportFailure(run.node);
      run.cut(run.error);
    } else {
      // No further attempt would be allowed: cutting it could only turn a slow success into a failure.
      this.#host.alarms.set(this, this.now(), leftMs);
    }
  }

  /** The fleet was destroyed while no attempt was alive. */
  onDestroyed(error: Error): void {
    this.#settle(error);
  }

  // What comes next.

  /** Tells the nodes what an answer says about its node. */
  #learn(run: AttemptRun, outcome: Outcome): void {
    run.class = outcome.class;
    const { nodes } = this.#host;
    if (outcome.drains) {
      nodes.reportDrain(run.node, retryAfterOf(run));
      return;
    }
    nodes.reportAnswer(run.node);
    if (saysClose(run.headers)) nodes.probeSoon(run.node);
  }

  /** Goes on with another attempt if that is allowed; true when it does. */
  #again(run: AttemptRun): boolean {
    const because = this.#retryOr(run);
    if (because === "body") run.error = new BodyNotReplayableError(this.method, this.path, []);
    return because === undefined;
  }

  /** Starts the way to another attempt, or says why not. */
  #retryOr(run: AttemptRun): Parameters<typeof failureOf>[0] | undefined {
    const { nodes, budget, random } = this.#host;
    const nowMs = this.now();
    this.#tried ??= new Set();
    this.#tried.add(run.node);
    const plan = planRetry(
      {
        class: run.class,
        attemptCount: run.n,
        maxAttempts:
          this.#retry.maxAttempts ?? (nodes.loadBalancedOnly ? MAX_ATTEMPTS_LOAD_BALANCED : MAX_ATTEMPTS),
        repeatable: this.#request?.repeatable ?? true,
        replayable: this.#request?.replayable ?? true,
        freeUsed: this.#freeUsed,
        chargedCount: this.#chargedCount,
        otherNode: nodes.hasOther(this.#tried),
        loadBalancedOnly: nodes.loadBalancedOnly,
        retryAfterMs: retryAfterOf(run) || undefined,
        leftMs: this.#deadlineMs - nowMs,
      },
      this.#retry,
      random(),
    );
    if (plan.kind === "settle") return plan.because;
    if (!plan.free && this.#retry.budget !== false && budget?.charge(nowMs) === false) {
      const told = { class: run.class, node: run.node.id };
      if (events.budgetEmpty.hasSubscribers) events.budgetEmpty.publish(told);
      return "budget";
    }
    if (plan.free) this.#freeUsed = true;
    else this.#chargedCount += 1;
    this.#host.alarms.clear(this);
    this.#past ??= [];
    this.#past.push(run);
    this.#current = undefined;
    this.#settledMs = nowMs;
    if (events.retry.hasSubscribers) {
      events.retry.publish({ class: run.class, delayMs: plan.delayMs, free: plan.free, from: run.node.id });
    }
    this.#wait(plan.delayMs, plan.free);
    return undefined;
  }

  #wait(delayMs: number, free: boolean): void {
    const leftMs = this.#deadlineMs - this.now();
    this.#host.waiting.add(this);
    const next = delayMs < leftMs ? (): void => this.#next(free) : (): void => this.#miss();
    // Even without a delay the next attempt begins on a clean stack: the last one may still be in undici's hands.
    if (delayMs <= 0) queueMicrotask(next);
    else this.#timer = setTimeout(next, Math.min(delayMs, leftMs));
  }

  #next(free: boolean): void {
    if (this.#state !== "trying") return;
    const node = this.#host.nodes.pick(this.#tried);
    if (node === undefined) void this.#waitForNode(free);
    else this.#attempt(node, this.now(), this.now() - this.#settledMs, free);
  }

  async #waitForNode(free: boolean): Promise<void> {
    const startedMs = this.now();
    const waitMs = Math.min(this.#retry.waitForNodeMs, this.#deadlineMs - startedMs);
    this.#nodeWait = new AbortController();
    this.#host.waiting.add(this);
    const { signal } = this.#nodeWait;
    const node = await this.#host.nodes.pickOrWait(this.#tried ?? new Set(), waitMs, signal);
    if (this.#state !== "trying") return;
    if (this.#deadlineMs - this.now() <= 1) this.#miss();
    else if (node === undefined) this.#settle(new NoEndpointError(waitMs));
    else this.#attempt(node, this.now(), this.now() - (this.#settledMs || startedMs), free);
  }

  #attempt(node: FleetNode, nowMs: number, delayBeforeMs: number, free: boolean): void {
    this.#host.waiting.delete(this);
    const n = (this.#past?.length ?? 0) + 1;
    const run = new AttemptRun(this, node, n, nowMs, delayBeforeMs, free);
    this.#current = run;
    const { perTryTimeoutMs } = this.#retry;
    const leftMs = this.#deadlineMs - nowMs;
    const repeatable = this.#request?.repeatable ?? true;
    const alarmMs = repeatable && perTryTimeoutMs > 0 ? Math.min(perTryTimeoutMs, leftMs) : leftMs;
    if (alarmMs !== Number.POSITIVE_INFINITY) this.#host.alarms.set(this, nowMs, alarmMs);
    const request = this.#request;
    if (request === undefined) {
      if (this.#options !== undefined) node.pool.dispatch(this.#options, run);
    } else if (request.asynchronous) {
      request.prepareAnew(n, node.connectMs).then(
        (prepared) => this.#dispatch(run, prepared),
        (error: Error) => this.#settle(error),
      );
    } else {
      this.#dispatch(run, request.prepare(n, node.connectMs));
    }
  }

  #dispatch(run: AttemptRun, { options, reader }: Prepared): void {
    run.reader = reader;
    if (this.#current === run && this.#state === "trying") run.node.pool.dispatch(options, run);
    else run.release();
  }

  #miss(): void {
    const error = new DeadlineExceededError(this.method, this.path, this.#retry.deadlineMs, this.attempts);
    if (this.#current?.started) this.#host.nodes.reportFailure(this.#current.node);
    this.#cutCurrent(error);
    this.#settle(error);
  }

  #cutCurrent(reason: Error): void {
    const run = this.#current;
    if (run === undefined) return;
    run.class = run.started ? "ambiguous" : "not-sent";
    run.error = reason;
    run.endedMs = this.now();
    run.cut(reason);
  }

  #commit(): void {
    this.#state = "committed";
    this.#host.alarms.clear(this);
  }

  #settle(error: Error): void {
    if (this.#state === "ended") return;
    this.#end(error);
    this.handler.onResponseError?.(this, error);
  }

  #end(error: Error | undefined): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    this.#host.alarms.clear(this);
    this.#host.waiting.delete(this);
    clearTimeout(this.#timer);
    this.#nodeWait?.abort();
    this.#request?.close();
    this.#request = undefined;
    this.#options = undefined;
    if (events.callEnd.hasSubscribers) {
      const { method, path, attempts } = this;
      events.callEnd.publish({ method, path, status: this.#current?.status, error, attempts });
    }
    this.#host.onCallEnded();
  }
}
