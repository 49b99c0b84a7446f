// What can go wrong with a dispatcher, as a value.
import type { CallKind } from "./call.ts";
import { type Answer, refusal } from "./wire-answer.ts";

/** Before the call had any effect; after it had it, with nothing answered; or after the whole answer was written. */
export type Moment = "before-accept" | "after-accept" | "after-answer";

/** What a dispatcher does with a call instead of serving it well. */
export type Fault =
  /** Takes the call and never answers. It has no effect. */
  | { readonly kind: "black-hole" }
  /** Takes the call, lets it have its effect, and never answers. */
  | { readonly kind: "swallow" }
  /** Serves the call at once and answers late. */
  | { readonly kind: "late"; readonly delayMs: number }
  /** Serves the call at once and answers when the promise is settled, whichever way. */
  | { readonly kind: "held"; readonly until: Promise<unknown> }
  /** The whole dispatcher dies: no connection, no listener, whatever ran is interrupted. */
  | { readonly kind: "die"; readonly when: Moment }
  /** The connection of this call is reset. */
  | { readonly kind: "reset"; readonly when: "before-accept" | "after-accept" }
  /** Of a submission, read, audit or cancel: the answer is about another execution. */
  | { readonly kind: "other-id"; readonly id?: string }
  /** `Content-Length` is so much too large, or too small. */
  | { readonly kind: "wrong-length"; readonly differenceBytes: number }
  /** The answer is cut after so many bytes, and the connection closed. */
  | { readonly kind: "cut"; readonly afterBytes: number }
  /** The call has its effect; what comes back are these bytes, by default none of HTTP. */
  | { readonly kind: "garbage"; readonly bytes?: Uint8Array | string }
  /** Any answer; the call has no effect. */
  | { readonly kind: "answer"; readonly status: number; readonly body: unknown }
  | RefusalFault;

/** Refusals of a dispatcher for which it would have to be out of order, or another one. The call has no effect. */
export type RefusalFault =
  /** Of a submission: `503 node at capacity`. */
  | { readonly kind: "at-capacity" }
  /** Of a submission: `422 request refused`, for the reason `invalid_request`. */
  | { readonly kind: "invalid-request" }
  /** Of a submission, read, audit or cancel: `503 execution journal unavailable; do not replay`. */
  | { readonly kind: "journal-unavailable" }
  /** Of a submission: `503 execution worker unavailable`. The id is bound all the same, its record `Failed`, and nothing ran. */
  | { readonly kind: "worker-unavailable" }
  /** Of an audit: `404 unknown execution audit`, for an execution that has none. */
  | { readonly kind: "no-audit" }
  /** Of a prewarm: `503 verified template no longer observable in serving cache`. */
  | { readonly kind: "template-gone" };

/** Which calls are meant. */
export interface CallMatch {
  readonly call: CallKind;
  /** Only calls about this execution. */
  readonly id?: string;
}

interface KnownRefusal {
  readonly calls: readonly CallKind[];
  readonly answer: Answer;
}

/** The calls that name an execution. */
export const aboutExecutions: readonly CallKind[] = ["submit", "read", "audit", "cancel"];

export const refusals: Readonly<Record<RefusalFault["kind"], KnownRefusal>> = {
  "at-capacity": {
    calls: ["submit"],
    answer: refusal(503, "node at capacity", { reason: "at_capacity" }),
  },
  "invalid-request": {
    calls: ["submit"],
    answer: refusal(422, "request refused", { reason: "invalid_request" }),
  },
  "journal-unavailable": {
    calls: aboutExecutions,
    answer: refusal(503, "execution journal unavailable; do not replay"),
  },
  "worker-unavailable": { calls: ["submit"], answer: refusal(503, "execution worker unavailable") },
  "no-audit": { calls: ["audit"], answer: refusal(404, "unknown execution audit") },
  "template-gone": {
    calls: ["prewarm"],
    answer: refusal(503, "verified template no longer observable in serving cache"),
  },
};

export const atCapacity: Answer = refusals["at-capacity"].answer;
export const workerUnavailable: Answer = refusals["worker-unavailable"].answer;

/** What a fault answers in place of the dispatcher; undefined when it serves the call. */
export function answerInstead(fault: Fault | undefined): Answer | undefined {
  if (fault === undefined || fault.kind === "worker-unavailable") return undefined;
  if (fault.kind === "answer") return { status: fault.status, body: fault.body };
  return fault.kind in refusals ? refusals[fault.kind as RefusalFault["kind"]].answer : undefined;
}

/** An answer that names another execution. */
export function withOtherId(answer: Answer, id = "some-other-execution"): Answer {
  if (typeof answer.body !== "object" || answer.body === null) return answer;
  const body: Record<string, unknown> = { ...answer.body };
  if ("requestId" in body) body["requestId"] = id;
  if (typeof body["receipt"] === "object" && body["receipt"] !== null) {
    body["receipt"] = { ...body["receipt"], requestId: id };
  }
  return { status: answer.status, body };
}

/** Bytes that no parser of HTTP takes, with every second one above 0x7f. */
export const garbage: Uint8Array = Uint8Array.from({ length: 256 }, (_, index) =>
  index % 2 === 0 ? 0x80 + (index >> 1) : index >> 1,
);
