// What one call sends, and how often it can: headers that are the same on every attempt, and a body for each.
import { randomUUID } from "node:crypto";
import type { Dispatcher } from "undici";
import { isRepeatable } from "./core/outcome.ts";
import type { CallOptions, FleetDispatchOptions, ResolvedRetry } from "./options.ts";
import {
  type AnyBody,
  BodyReader,
  type HeadStart,
  isOneShot,
  lengthOf,
  OneShotBody,
  WholeBody,
} from "./request-body.ts";
import { flattenHeaders, HAS_HOST, HAS_KEY, IS_ITERABLE, scanHeaders } from "./request-headers.ts";

/** Options for undici, and the reader whose body they carry. */
export interface Prepared {
  readonly options: Dispatcher.DispatchOptions;
  readonly reader: BodyReader | undefined;
}

/** Head start when the node's connect time is unknown, and the bounds when it is (three times that). */
const HEAD_START_MS = 20;
const HEAD_START_MIN_MS = 10;
const HEAD_START_MAX_MS = 50;

/** Internal: the request of one call. */
export class RequestPlan {
  /** Whether running it twice does no harm. */
  readonly repeatable: boolean;
  /** Declared length of the body in bytes; undefined when unknown. */
  readonly bodyBytes: number | undefined;
  readonly #options: FleetDispatchOptions;
  readonly #settings: CallOptions;
  readonly #retry: ResolvedRetry;
  readonly #headers: Dispatcher.DispatchOptions["headers"];
  readonly #oneShot: OneShotBody | undefined;
  #former: AnyBody;

  /** A plan only where one is needed: a plain idempotent request without a body is sent as it is. */
  static for(options: FleetDispatchOptions, retry: ResolvedRetry): RequestPlan | undefined {
    const plain =
      options.fleet === undefined &&
      (options.body === undefined || options.body === null) &&
      isRepeatable(options.method, false, undefined) &&
      (scanHeaders(options.headers) & (HAS_HOST | IS_ITERABLE)) === 0;
    return plain ? undefined : new RequestPlan(options, retry);
  }

  constructor(options: FleetDispatchOptions, retry: ResolvedRetry) {
    const settings = options.fleet ?? {};
    let found = scanHeaders(options.headers);
    let headers = options.headers;
    const key = settings.idempotencyKey;
    if ((found & (HAS_HOST | IS_ITERABLE)) !== 0 || (key !== undefined && key !== false)) {
      const flat = flattenHeaders(headers);
      found = scanHeaders(flat);
      if (key !== undefined && key !== false && (found & HAS_KEY) === 0) {
        flat.push("idempotency-key", key === true ? randomUUID() : key);
        found |= HAS_KEY;
      }
      headers = flat;
    }
    this.#options = options;
    this.#settings = settings;
    this.#retry = retry;
    this.#headers = headers;
    this.repeatable = isRepeatable(options.method, (found & HAS_KEY) !== 0, settings.idempotent);
    const body = options.body as AnyBody;
    const oneShot = settings.replay === undefined && isOneShot(body);
    this.#oneShot = oneShot ? new OneShotBody(body, retry.replayBufferBytes) : undefined;
    this.bodyBytes = settings.replay === undefined && !oneShot ? lengthOf(body) : declaredLength(headers);
  }

  /** Whether the body can be sent again. */
  get replayable(): boolean {
    return this.#oneShot?.consumed !== true && this.#oneShot?.error === undefined;
  }

  /** What the caller's own body source threw. */
  get bodyError(): unknown {
    return this.#oneShot?.error;
  }

  /** True when {@link prepare} has to ask the caller for a body first. */
  get asynchronous(): boolean {
    return this.#settings.replay !== undefined;
  }

  /** As {@link prepare}, with a fresh body from the caller's factory. */
  async prepareAnew(n: number, connectMs: number | undefined): Promise<Prepared> {
    this.#discardFormer();
    const body = (await this.#settings.replay?.()) as AnyBody;
    this.#former = body;
    return this.prepare(n, connectMs, body);
  }

  /** What attempt `n` sends to a node that took `connectMs` to connect. */
  prepare(n: number, connectMs: number | undefined, given = this.#options.body as AnyBody): Prepared {
    let headers = this.#headers;
    const { attemptHeader } = this.#settings;
    if (typeof attemptHeader === "string" && n > 1) {
      headers = [...flattenHeaders(headers), attemptHeader, String(n)];
    }
    const body = given instanceof URLSearchParams ? given.toString() : given;
    const headStart = this.#headStart(body, connectMs);
    if (this.#oneShot !== undefined) {
      const reader = new BodyReader(this.#oneShot, headStart);
      return { options: this.#with(headers, reader), reader };
    }
    const whole = typeof body === "string" || body instanceof ArrayBuffer || ArrayBuffer.isView(body);
    if (headStart === undefined || !whole) return { options: this.#with(headers, body), reader: undefined };
    // Written in pieces the length would be unknown to undici, and the body chunked.
    if (declaredLength(headers) === undefined) {
      headers = [...flattenHeaders(headers), "content-length", String(lengthOf(body))];
    }
    const reader = new BodyReader(new WholeBody(body), headStart);
    return { options: this.#with(headers, reader), reader };
  }

  /** Lets the caller's source go. */
  close(): void {
    this.#oneShot?.close();
    this.#discardFormer();
  }

  #with(headers: Dispatcher.DispatchOptions["headers"], body: unknown): Dispatcher.DispatchOptions {
    return { ...this.#options, headers: headers ?? null, body: (body ?? null) as string | null };
  }

  #headStart(body: AnyBody, connectMs: number | undefined): HeadStart | undefined {
    const { bodyHeadStart } = this.#retry;
    if (bodyHeadStart === false || body === null || body === undefined) return undefined;
    // Where an ambiguous failure can be repeated with the same body, nothing is lost by missing a refusal.
    if (this.repeatable && this.#oneShot === undefined) return undefined;
    if (typeof body === "string" && body.length * 3 < bodyHeadStart.minBytes) return undefined;
    const bytes = this.#oneShot === undefined ? lengthOf(body) : this.bodyBytes;
    if (bytes !== undefined && bytes < bodyHeadStart.minBytes) return undefined;
    const auto =
      connectMs === undefined
        ? HEAD_START_MS
        : Math.min(HEAD_START_MAX_MS, Math.max(HEAD_START_MIN_MS, 3 * connectMs));
    const waitMs = bodyHeadStart.waitMs === "auto" ? auto : bodyHeadStart.waitMs;
    return { firstChunkBytes: bodyHeadStart.firstChunkBytes, waitMs };
  }

  #discardFormer(): void {
    const former = this.#former as
      | { destroy?(): void; cancel?(): Promise<void>; locked?: boolean }
      | undefined;
    this.#former = undefined;
    if (typeof former !== "object" || former === null) return;
    if (typeof former.destroy === "function") former.destroy();
    else if (typeof former.cancel === "function" && former.locked === false) void former.cancel();
  }
}

function declaredLength(headers: Dispatcher.DispatchOptions["headers"]): number | undefined {
  const flat = flattenHeaders(headers);
  for (let index = 0; index < flat.length; index += 2) {
    if (flat[index]?.toLowerCase() === "content-length") return Number(flat[index + 1]);
  }
  return undefined;
}
