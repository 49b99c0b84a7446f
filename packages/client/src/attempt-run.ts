// One attempt: the handler that undici's Pool talks to. It holds back what could be a drain refusal, passes on what
// belongs to the caller, and goes deaf once its call went on without it.
import type { Duplex } from "node:stream";
import { type Dispatcher, errors } from "undici";
import type { Attempt } from "./attempts.ts";
import type { AttemptClass } from "./core/attempt-class.ts";
import type { ResponseHeaders } from "./core/drain-marker.ts";
import { classifyHeaders, type Outcome } from "./core/outcome.ts";
import { events } from "./events.ts";
import type { FleetNode } from "./fleet-node.ts";
import type { BodyReader } from "./request-body.ts";

type Headers = Parameters<NonNullable<Dispatcher.DispatchHandler["onResponseStart"]>>[2];

/** What an attempt tells its call. */
export interface AttemptOwner extends Dispatcher.DispatchController {
  readonly handler: Dispatcher.DispatchHandler;
  readonly method: string;
  readonly rules: Parameters<typeof classifyHeaders>[3];
  readonly now: () => number;
  /** Headers are here and tell the class. The call either passes the attempt on or discards it. */
  onHeaders(run: AttemptRun, outcome: Outcome): void;
  /** A held response is complete, or (with `error`) broke off. */
  onHeld(run: AttemptRun, error: Error | undefined): void;
  /** No headers came. */
  onFailure(run: AttemptRun, error: Error): void;
  /** The response that was passed on has ended. */
  onPassed(run: AttemptRun, error: Error | undefined): void;
}

/** A discarded response may be read to its end for this much, to keep the connection; beyond, it is cut. */
const DISCARD_BYTES = 65_536;
const nothing: Headers = {};

type Mode = "waiting" | "held" | "passing" | "deaf";

/** Internal: one attempt of a call. */
export class AttemptRun implements Dispatcher.DispatchHandler {
  readonly node: FleetNode;
  readonly n: number;
  readonly startedMs: number;
  endedMs = 0;
  class: AttemptClass = "ambiguous";
  status = 0;
  headers: Headers = nothing;
  controller: Dispatcher.DispatchController | undefined = undefined;
  /** The request began to leave this process. */
  started = false;
  /** All of the request was handed over. */
  bodySent = false;
  // `declare` leaves no trace in the running code: what most attempts never have is set when it comes.
  declare delayBeforeMs?: number;
  declare free?: boolean;
  declare error?: Error | undefined;
  declare statusText?: string | undefined;
  declare trailers?: Headers;
  /** Body of a held response. */
  declare chunks?: Buffer[] | undefined;
  declare reader?: BodyReader | undefined;
  declare deafBytes?: number;
  readonly #call: AttemptOwner;
  #mode: Mode = "waiting";
  #counted = true;

  constructor(call: AttemptOwner, node: FleetNode, n: number, nowMs: number) {
    this.#call = call;
    this.node = node;
    this.n = n;
    this.startedMs = nowMs;
    node.inflight += 1;
  }

  /** The caller gets what comes. */
  pass(): void {
    this.#mode = "passing";
  }

  /** Nobody waits for the rest. A short rest is read so that the connection can be used again. */
  discard(): void {
    const over = this.#mode === "held";
    this.#mode = "deaf";
    this.chunks = undefined;
    this.reader?.stop();
    if (!over && !this.bodySent) this.controller?.abort(new errors.RequestAbortedError());
  }

  /** Ends it now: the socket is destroyed, or, if it was not sent yet, it will not be. */
  cut(reason: Error): void {
    this.#mode = "deaf";
    this.error = reason;
    this.reader?.stop();
    this.controller?.abort(reason);
    this.release();
    this.conclude(this.started ? "ambiguous" : "not-sent");
  }

  /** Its class is known. */
  conclude(ended: AttemptClass): void {
    this.class = ended;
    if (this.endedMs === 0) this.endedMs = this.#call.now();
    if (events.attemptEnd.hasSubscribers) {
      events.attemptEnd.publish(this.toAttempt(Date.now() - this.#call.now()));
    }
  }

  /** Counts the node's request as over; once. */
  release(): void {
    if (!this.#counted) return;
    this.#counted = false;
    this.node.inflight -= 1;
  }

  /** As callers see it. @param wallMs what the call's clock has to be moved by to give time since the epoch */
  toAttempt(wallMs: number): Attempt {
    return {
      n: this.n,
      node: this.node.id,
      class: this.class,
      ...(this.status === 0 ? {} : { status: this.status }),
      ...(this.error === undefined ? {} : { error: this.error }),
      startedAt: Math.round(this.startedMs + wallMs),
      durationMs: Math.max(0, this.endedMs - this.startedMs),
      delayBeforeMs: this.delayBeforeMs ?? 0,
      free: this.free ?? false,
      hedge: false,
    };
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.#mode === "deaf") {
      controller.abort(new errors.RequestAbortedError());
      return;
    }
    this.started = true;
    if (events.attemptStart.hasSubscribers) {
      events.attemptStart.publish({ method: this.#call.method, n: this.n, node: this.node.id });
    }
  }

  onRequestSent(): void {
    this.bodySent = true;
    if (this.#mode === "waiting") this.#call.handler.onRequestSent?.();
  }

  onBodySent(chunk: Buffer): void {
    if (this.#mode === "waiting") this.#call.handler.onBodySent?.(chunk);
  }

  onResponseStarted(): void {
    if (this.#mode === "waiting") this.#call.handler.onResponseStarted?.();
  }

  onRequestUpgrade(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Headers,
    socket: Duplex,
  ): void {
    this.#settleHeaders(status, headers, undefined);
    this.conclude("answered");
    this.#mode = "passing";
    this.#call.handler.onRequestUpgrade?.(this.#call, status, headers, socket);
    this.release();
    this.#call.onPassed(this, undefined);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Headers,
    statusText?: string,
  ): void {
    if (this.#mode === "deaf") return;
    if (status < 200) {
      this.#call.handler.onResponseStart?.(this.#call, status, headers, statusText);
      return;
    }
    this.#settleHeaders(status, headers, statusText);
    const hasBody = this.#call.method !== "HEAD";
    const outcome = classifyHeaders(status, headers as ResponseHeaders, hasBody, this.#call.rules);
    if (outcome === "hold") this.#mode = "held";
    else this.#call.onHeaders(this, outcome);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#mode === "passing") {
      this.#call.handler.onResponseData?.(this.#call, chunk);
    } else if (this.#mode === "held") {
      this.chunks ??= [];
      this.chunks.push(chunk);
    } else {
      this.deafBytes = (this.deafBytes ?? 0) + chunk.length;
      if (this.deafBytes > DISCARD_BYTES) controller.abort(new errors.RequestAbortedError());
    }
  }

  onResponseEnd(_controller: Dispatcher.DispatchController, trailers: Headers): void {
    this.release();
    this.reader?.stop();
    this.trailers = trailers;
    if (this.#mode === "held") this.#call.onHeld(this, undefined);
    else if (this.#mode === "passing") {
      this.#call.handler.onResponseEnd?.(this.#call, trailers);
      this.#call.onPassed(this, undefined);
    }
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.release();
    this.reader?.stop();
    const mode = this.#mode;
    if (mode === "deaf") return;
    this.error = error;
    if (mode === "waiting") {
      this.#call.onFailure(this, error);
    } else if (mode === "held") {
      this.#call.onHeld(this, error);
    } else {
      this.class = "committed";
      this.#call.handler.onResponseError?.(this.#call, error);
      this.#call.onPassed(this, error);
    }
  }

  #settleHeaders(status: number, headers: Headers, statusText: string | undefined): void {
    this.status = status;
    this.headers = headers;
    this.statusText = statusText;
    this.endedMs = this.#call.now();
  }
}
