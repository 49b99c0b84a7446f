// One call through a fleet: attempts in a row until one is the caller's. It is the controller that the caller's
// handler holds, so abort, pause and resume reach whichever attempt is alive. What to do next is decided in
// core/retry-plan.ts; here it is done.
import { type Dispatcher, errors } from "undici";
import type { Alarm, AlarmList } from "./alarms.ts";
import { type AttemptOwner, AttemptRun } from "./attempt-run.ts";
import { type AttemptSource, CallContext } from "./attempts.ts";
import { CallController } from "./call-controller.ts";
import { failureOf, isCallersFault, isOurClosing, retryAfterOf, saysClose } from "./call-failure.ts";
import type { CallHost } from "./call-host.ts";
import { CallPause } from "./call-pause.ts";
import { classifyFailure, classifyHeld, type Outcome, type OutcomeRules } from "./core/outcome.ts";
import { BodyNotReplayableError, DeadlineExceededError, NoEndpointError } from "./errors.ts";
import { events } from "./events.ts";
import type { FleetNode } from "./fleet-node.ts";
import { HeldResponse } from "./held-response.ts";
import type { FleetDispatchOptions, ResolvedRetry } from "./options.ts";
import { type Prepared, RequestPlan } from "./request-plan.ts";
import { RetryCourse, type Unretried } from "./retry-course.ts";

const none: ReadonlySet<FleetNode> = new Set();

/** Internal: a call under way. */
export class Call extends CallController implements AttemptOwner, AttemptSource, Alarm {
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
  /** An upgrade or a CONNECT is sent to one node only: what it becomes is not ours to repeat. */
  readonly #upgrades: boolean;
  #state: "trying" | "committed" | "ended" = "trying";
  #course: RetryCourse | undefined;
  #pause: CallPause | undefined;
  #settledMs = 0;

  constructor(
    host: CallHost,
    options: FleetDispatchOptions,
    handler: Dispatcher.DispatchHandler,
    retry: ResolvedRetry,
    rules: OutcomeRules,
    nowMs: number,
  ) {
    super();
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
    this.#upgrades = options.method === "CONNECT" || Boolean(options.upgrade);
  }

  start(nowMs: number): void {
    if (events.callStart.hasSubscribers) events.callStart.publish({ method: this.method, path: this.path });
    try {
      this.handler.onRequestStart?.(this, new CallContext(this));
    } catch (error) {
      this.#settle(error as Error);
    }
    if (this.#state !== "trying") return;
    const node = this.#host.nodes.pick();
    if (node === undefined) void this.#waitForNode(false);
    else this.#attempt(node, nowMs, 0, false);
  }

  // The controller that the caller's handler holds.

  abort(reason: Error): void {
    if (this.#state === "ended" || this.abortReason !== null) return;
    this.abortReason = reason;
    if (this.#state === "trying") {
      this.current?.cut(reason);
      this.#settle(reason);
    } else if (this.held === undefined) {
      this.current?.controller?.abort(reason);
    } else {
      this.held.fail(reason);
    }
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
    const { status = 503, headers, chunks = [] } = run;
    if (error === undefined) {
      this.#learn(run, classifyHeld(status, headers as never, Buffer.concat(chunks).toString(), this.rules));
    } else {
      // Half a refusal proves nothing.
      run.conclude("ambiguous");
      this.#host.nodes.reportFailure(run.node);
    }
    if (run.class !== "answered" && this.#again(run)) return;
    this.#commit();
    this.held = new HeldResponse(this.handler, this, run, error, (failed) => this.onPassed(run, failed));
    this.held.start();
  }

  onFailure(run: AttemptRun, error: Error): void {
    const bodyError = this.#request?.bodyError as Error | undefined;
    const final = this.#host.destroyedBy ?? bodyError ?? (isCallersFault(error) ? error : undefined);
    if (final !== undefined) {
      run.conclude(run.started ? "ambiguous" : "not-sent");
      this.#settle(final);
      return;
    }
    const { started, bodySent } = run;
    const failure = { started, bodySent, bodyBytes: this.#request?.bodyBytes ?? 0 };
    run.conclude(classifyFailure(failure, this.#retry.incompleteUploadSafeBelowBytes));
    if (!isOurClosing(error)) this.#host.nodes.reportFailure(run.node);
    const because = this.#retryOr(run);
    if (because !== undefined) this.#settle(failureOf(because, this, error));
  }

  onPassed(_run: AttemptRun, error: Error | undefined): void {
    this.#end(error);
  }

  /** The deadline, or the time of one attempt. */
  onAlarm(): void {
    const run = this.current;
    const leftMs = this.#deadlineMs - this.now();
    if (leftMs <= 1 || run === undefined) {
      this.#miss();
      return;
    }
    run.class = run.started ? "ambiguous" : "not-sent";
    if (this.#retryOr(run) === undefined) {
      this.#host.nodes.reportFailure(run.node);
      run.cut(new errors.HeadersTimeoutError());
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
    run.conclude(outcome.class);
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
  #retryOr(run: AttemptRun): Unretried | undefined {
    if (this.#upgrades) return "final";
    const nowMs = this.now();
    this.#course ??= new RetryCourse(this.#host, this.#retry, this.#request);
    const plan = this.#course.decide(run, nowMs, this.#deadlineMs - nowMs);
    if (typeof plan === "string") return plan;
    this.#host.alarms.clear(this);
    this.past ??= [];
    this.past.push(run);
    this.current = undefined;
    this.#settledMs = nowMs;
    this.#wait(plan.delayMs, plan.free);
    return undefined;
  }

  #wait(delayMs: number, free: boolean): void {
    const leftMs = this.#deadlineMs - this.now();
    this.#pause ??= new CallPause(this.#host, this);
    if (delayMs < leftMs) this.#pause.after(delayMs, () => this.#next(free));
    else this.#pause.after(leftMs, () => this.#miss());
  }

  #next(free: boolean): void {
    if (this.#state !== "trying") return;
    const node = this.#host.nodes.pick(this.#course?.tried);
    if (node === undefined) void this.#waitForNode(free);
    else this.#attempt(node, this.now(), this.now() - this.#settledMs, free);
  }

  async #waitForNode(free: boolean): Promise<void> {
    const startedMs = this.now();
    const waitMs = Math.min(this.#retry.waitForNodeMs, this.#deadlineMs - startedMs);
    this.#pause ??= new CallPause(this.#host, this);
    const node = await this.#pause.node(this.#course?.tried ?? none, waitMs).catch(() => undefined);
    if (this.#state !== "trying") return;
    if (this.#deadlineMs - this.now() <= 1) this.#miss();
    else if (node === undefined) this.#settle(new NoEndpointError(waitMs));
    else this.#attempt(node, this.now(), this.now() - (this.#settledMs || startedMs), free);
  }

  #attempt(node: FleetNode, nowMs: number, delayBeforeMs: number, free: boolean): void {
    this.#endPause();
    const n = (this.past?.length ?? 0) + 1;
    const run = new AttemptRun(this, node, n, nowMs);
    if (n > 1) run.free = free;
    if (delayBeforeMs > 0) run.delayBeforeMs = delayBeforeMs;
    this.current = run;
    const { perTryTimeoutMs } = this.#retry;
    const leftMs = this.#deadlineMs - nowMs;
    const repeatable = this.#request?.repeatable ?? true;
    const alarmMs = repeatable && perTryTimeoutMs > 0 ? Math.min(perTryTimeoutMs, leftMs) : leftMs;
    if (alarmMs !== Number.POSITIVE_INFINITY) this.#host.alarms.set(this, nowMs, alarmMs);
    const request = this.#request;
    if (request === undefined) {
      if (this.#options !== undefined) node.dispatch(this.#options, run);
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
    if (this.current === run && this.#state === "trying") run.node.dispatch(options, run);
    else run.release();
  }

  #endPause(): void {
    this.#pause?.end();
    this.#pause = undefined;
  }

  #miss(): void {
    if (this.#state !== "trying") return;
    if (this.current?.started) this.#host.nodes.reportFailure(this.current.node);
    this.current?.cut(new errors.HeadersTimeoutError());
    this.#settle(new DeadlineExceededError(this.method, this.path, this.#retry.deadlineMs, this.attempts));
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
    this.#endPause();
    this.#request?.close();
    this.#request = undefined;
    this.#options = undefined;
    if (events.callEnd.hasSubscribers) {
      const { method, path, attempts } = this;
      events.callEnd.publish({ method, path, status: this.current?.status, error, attempts });
    }
    this.#host.onCallEnded();
  }
}
