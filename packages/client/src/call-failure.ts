// What an undici error or a response means for a call.
import type { Dispatcher } from "undici";
import type { AttemptRun } from "./attempt-run.ts";
import type { Attempt } from "./attempts.ts";
import { hasToken, headerOf, type ResponseHeaders } from "./core/drain-marker.ts";
import { parseRetryAfter } from "./core/retry-plan.ts";
import {
  AmbiguousRequestError,
  AttemptsExhaustedError,
  BodyNotReplayableError,
  type FleetError,
  RetryBudgetError,
} from "./errors.ts";
import type { Unretried } from "./retry-course.ts";

/** undici codes for a request that no node could take: its maker has to mend it. */
const callersFaults: ReadonlySet<string> = new Set([
  "UND_ERR_INVALID_ARG",
  "UND_ERR_NOT_SUPPORTED",
  "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH",
]);

function codeOf(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : "";
}

/** True for an error about the request itself. */
export function isCallersFault(error: Error): boolean {
  return callersFaults.has(codeOf(error));
}

/** True when our own pool was closed under the request: the node is not to blame. */
export function isOurClosing(error: Error): boolean {
  const code = codeOf(error);
  return code === "UND_ERR_CLOSED" || code === "UND_ERR_DESTROYED";
}

/** The error of a call that ends without a response. */
export function failureOf(
  because: Unretried,
  call: { readonly method: string; readonly path: string; readonly attempts: readonly Attempt[] },
  cause: Error,
): FleetError {
  const { method, path, attempts } = call;
  const options = { cause };
  if (because === "not-repeatable") return new AmbiguousRequestError(method, path, attempts, options);
  if (because === "budget") return new RetryBudgetError(method, path, attempts, options);
  if (because === "body") return new BodyNotReplayableError(method, path, attempts, options);
  return new AttemptsExhaustedError(method, path, attempts, options);
}

/** The answer's `Retry-After` in milliseconds, 0 when there is none. */
export function retryAfterOf(run: AttemptRun): number {
  const value = headerOf(run.headers as ResponseHeaders, "retry-after");
  return value === "" ? 0 : (parseRetryAfter(value, Date.now(), Date.parse) ?? 0);
}

/** True when the node closes the connection after this answer: it may be about to leave. */
export function saysClose(
  headers: Parameters<NonNullable<Dispatcher.DispatchHandler["onResponseStart"]>>[2],
): boolean {
  const connection = headers["connection"];
  if (connection === undefined || connection === "keep-alive") return false;
  return hasToken(headerOf(headers as ResponseHeaders, "connection"), "close");
}
