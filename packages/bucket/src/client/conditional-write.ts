/** How a conditional write gets its one true outcome, whatever store it goes to. */
import { setTimeout as sleep } from "node:timers/promises";
import type {
  Ambiguous,
  Applied,
  Bucket,
  ConditionalWrite,
  NotModified,
  Rejected,
  StoredObject,
} from "../bucket.ts";
import {
  BucketDiskError,
  BucketFullError,
  BucketUnreachableError,
  ObjectTooLargeError,
  UndecidedWriteError,
  UnsettledWriteError,
} from "../errors.ts";

/** A store answered that another write ran at the same time: ours was not made, send it again. Tries in all. */
const CONFLICT_ATTEMPT_COUNT = 4;
const PAUSE_FIRST_MS = 25;
const PAUSE_LIMIT_MS = 2_000;

/** What one request of a conditional write came to. */
export type Attempt =
  | Applied
  | Rejected
  /** Certainly not made, the condition not decided (S3: 409 ConditionalRequestConflict). */
  | { kind: "conflict"; cause: Error }
  /** Certainly not made, and a repetition is not for us to decide. */
  | { kind: "failed"; cause: Error }
  /** Perhaps made. */
  | { kind: "unknown"; cause: Error };

/** One conditional write, as its store does it. */
export interface WritePlan {
  /** Where it goes, to read the key back. */
  bucket: Pick<Bucket, "get">;
  key: string;
  body: Uint8Array;
  /** The ETag that must be there; undefined for "no object". */
  expectedEtag: string | undefined;
  settleTimeoutMs: number;
  /** Sends the write once. Never throws. */
  attempt(signal: AbortSignal | undefined): Promise<Attempt>;
}

/** Makes the write: one request, again only where the store said that the former one was not made. */
export async function writeConditionally(
  plan: WritePlan,
  signal: AbortSignal | undefined,
): Promise<ConditionalWrite> {
  signal?.throwIfAborted();
  for (let count = 1; ; count += 1) {
    const attempt = await plan.attempt(signal);
    if (attempt.kind === "applied" || attempt.kind === "rejected") return attempt;
    if (attempt.kind === "failed") throw attempt.cause;
    if (attempt.kind === "unknown" || count >= CONFLICT_ATTEMPT_COUNT) return ambiguous(plan, attempt.cause);
    await sleep(pauseMs(count), undefined, { signal });
  }
}

function ambiguous(plan: WritePlan, cause: Error): Ambiguous {
  return { kind: "ambiguous", cause, settle: (options) => settle(plan, cause, options?.signal) };
}

async function settle(
  plan: WritePlan,
  cause: Error,
  signal: AbortSignal | undefined,
): Promise<Applied | Rejected> {
  const deadline = AbortSignal.timeout(plan.settleTimeoutMs);
  const either = signal ? AbortSignal.any([signal, deadline]) : deadline;
  let latest: Error = cause;
  for (let count = 1; !either.aborted; count += 1) {
    const outcome = await decide(plan, either);
    if (outcome.kind !== "undecided") return outcome;
    if (either.aborted) break;
    if (!isTransient(outcome.cause)) throw outcome.cause;
    latest = outcome.cause;
    await sleep(pauseMs(count), undefined, { signal: either }).catch(() => {});
  }
  signal?.throwIfAborted();
  throw new UnsettledWriteError(plan.key, plan.settleTimeoutMs, { cause: latest });
}

/** Reads back once, and sends the write again if the key is still as it was before. */
async function decide(
  plan: WritePlan,
  signal: AbortSignal,
): Promise<Applied | Rejected | { kind: "undecided"; cause: Error }> {
  const { bucket, key, body, expectedEtag } = plan;
  let found: StoredObject | NotModified | undefined;
  try {
    found = await bucket.get(key, { signal, maxBytes: body.length, ifNoneMatch: expectedEtag });
  } catch (error) {
    if (error instanceof ObjectTooLargeError) return { kind: "rejected" };
    return { kind: "undecided", cause: error as Error };
  }
  if (found !== undefined && !("notModified" in found)) {
    const ours = Buffer.compare(found.body, body) === 0;
    return ours ? { kind: "applied", etag: found.etag } : { kind: "rejected" };
  }
  const open = expectedEtag === undefined ? found === undefined : found !== undefined;
  if (!open) return { kind: "rejected" };
  const again = await plan.attempt(signal);
  if (again.kind === "applied") return again;
  if (again.kind === "rejected") {
    // Our own first request, or somebody else's, came in between: read once more.
    return { kind: "undecided", cause: new BucketUnreachableError(key, "the key changed meanwhile") };
  }
  return { kind: "undecided", cause: again.cause };
}

function isTransient(error: Error): boolean {
  return (
    error instanceof BucketUnreachableError ||
    error instanceof BucketFullError ||
    error instanceof BucketDiskError ||
    error instanceof UndecidedWriteError
  );
}

function pauseMs(count: number): number {
  return Math.min(PAUSE_FIRST_MS * 2 ** Math.min(count - 1, 20), PAUSE_LIMIT_MS) * (0.5 + Math.random() / 2);
}
