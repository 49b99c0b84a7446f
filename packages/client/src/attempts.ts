import type { Dispatcher, Response } from "undici";
import type { AttemptClass } from "./core/attempt-class.ts";

/** One try of a call at one node. */
export interface Attempt {
  /** Counts from 1. */
  readonly n: number;
  /** The node's id. */
  readonly node: string;
  readonly class: AttemptClass;
  /** The status, when there was an answer. */
  readonly status?: number;
  /** Why it failed, or why an answered attempt could not be repeated. */
  readonly error?: Error;
  /** Milliseconds since the Unix epoch. */
  readonly startedAt: number;
  /** Until its headers, or until it failed. */
  readonly durationMs: number;
  /** What was waited before it. */
  readonly delayBeforeMs: number;
  /** True for a retry that the budget was not charged for. */
  readonly free: boolean;
  /** True for a second request sent beside a slow one. Nothing hedges yet. */
  readonly hedge: boolean;
}

/** Something that knows what a call tried. */
export interface AttemptSource {
  readonly attempts: readonly Attempt[];
}

/** Key under which the `context` of an undici response leads to its call. Survives the redirect interceptor's copy. */
const callKey: unique symbol = Symbol("cellkit.client.call");

/** Internal: the `context` of a response, by which {@link attemptsOf} finds what was tried. */
export class CallContext {
  readonly [callKey]: AttemptSource;

  constructor(call: AttemptSource) {
    this[callKey] = call;
  }
}

/** Internal key of a call option: told of the call that a dispatch became. */
export const noteCall: unique symbol = Symbol("cellkit.client.noteCall");

/** Internal: call options with {@link noteCall}. */
export interface NotedCallOptions {
  [noteCall]?: (call: AttemptSource) => void;
}

const sourcesByResponse = new WeakMap<object, AttemptSource>();

/** Lets {@link attemptsOf} answer for a `Response` that a fetch made. */
export function rememberAttempts(response: object, source: AttemptSource): void {
  sourcesByResponse.set(response, source);
}

/**
 * What a call tried, oldest first: for a response of `fleet.request()` or of a fetch from `createFetch()`, or for an
 * error of either. Empty for what did not come from a fleet.
 */
export function attemptsOf(x: Response | Dispatcher.ResponseData | Error): readonly Attempt[] {
  const remembered = sourcesByResponse.get(x);
  if (remembered !== undefined) return remembered.attempts;
  if ("context" in x) {
    const context = x.context as { [callKey]?: AttemptSource } | null;
    return context?.[callKey]?.attempts ?? [];
  }
  if (x instanceof Error) {
    if ("attempts" in x && Array.isArray(x.attempts)) return x.attempts as readonly Attempt[];
    if (x.cause instanceof Error) return attemptsOf(x.cause);
  }
  return [];
}
