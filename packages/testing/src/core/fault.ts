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
  /** Serves the call at once and answers when the promise is settled. */
  | { readonly kind: "held"; readonly until: Promise<unknown> }
  /** The whole dispatcher dies: no connection, no listener, whatever ran is interrupted. */
  | { readonly kind: "die"; readonly when: Moment }
  /** The connection of this call is reset. */
  | { readonly kind: "reset"; readonly when: "before-accept" | "after-accept" }
  /** The answer is about another execution. */
  | { readonly kind: "other-id"; readonly id?: string }
  /** `Content-Length` is so much too large, or too small. */
  | { readonly kind: "wrong-length"; readonly differenceBytes: number }
  /** The answer is cut after so many bytes, and the connection closed. */
  | { readonly kind: "cut"; readonly afterBytes: number }
  /** The call has its effect; what comes back are these bytes, by default none of HTTP. */
  | { readonly kind: "garbage"; readonly bytes?: Uint8Array | string }
  /** `503 node at capacity`; the call has no effect. */
  | { readonly kind: "at-capacity" }
  /** Any answer; the call has no effect. */
  | { readonly kind: "answer"; readonly status: number; readonly body: unknown };

/** Which calls are meant. */
export interface CallMatch {
  readonly call: CallKind;
  /** Only calls about this execution. */
  readonly id?: string;
}

export const atCapacity: Answer = refusal(503, "node at capacity", { reason: "at_capacity" });

/** What a fault answers in place of the dispatcher; undefined when it serves the call. */
export function answerInstead(fault: Fault | undefined): Answer | undefined {
  if (fault?.kind === "at-capacity") return atCapacity;
  return fault?.kind === "answer" ? { status: fault.status, body: fault.body } : undefined;
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
