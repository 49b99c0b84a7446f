// The course of a submission, of waiting for a result, and of a cancellation that has to end: given what the last try met, what
// to do next. Nothing here waits or sends. The id and the bytes are no part of it: they never change, so a try can only be made
// again as it was, and a router answers a repeated submission by reading.
import { CallError, DeadlineError, type ExecutionError } from "../errors.ts";
import { delayMs, type Pace } from "./pace.ts";
import { type ExecutionRecord, isTerminal } from "./record.ts";
import { type Sent, type Trouble, worseSent } from "./trouble.ts";

/** What one try met: a record, or trouble. */
export type Outcome =
  | { readonly kind: "record"; readonly record: ExecutionRecord }
  | { readonly kind: "trouble"; readonly trouble: Trouble };

/** What to do next. */
export type Step =
  | { readonly kind: "settled"; readonly record: ExecutionRecord }
  | { readonly kind: "wait"; readonly forMs: number }
  | { readonly kind: "fail"; readonly error: ExecutionError };

/** What is known of an execution across all calls of one handle. */
export interface Knowledge {
  readonly sent: Sent;
  /** Whether a router has ever answered with a record of it. */
  readonly accepted: boolean;
}

/** Before the first call. */
export const nothingKnown: Knowledge = { sent: "no", accepted: false };

export type Purpose = "submit" | "result" | "cancel";

export interface CoursePlan {
  readonly purpose: Purpose;
  readonly id: string;
  /** On the caller's clock: no try starts later. */
  readonly deadlineMs: number;
  readonly pace: Pace;
}

/** What is known after a try. */
export function learn(before: Knowledge, outcome: Outcome): Knowledge {
  if (outcome.kind === "record") return { sent: "yes", accepted: true };
  const { code, sent } = outcome.trouble;
  // A conflict proves that these bytes were never taken, though earlier tries had no answer: the id is bound to others for ever.
  if (code === "CELLKIT_EXECUTION_ID_CONFLICT" && before.sent !== "yes") return { ...before, sent: "no" };
  return { ...before, sent: worseSent(before.sent, sent) };
}

/**
 * The next step.
 *
 * @param known what is known after this outcome
 * @param tries how many tries were made, this one included
 * @param nowMs the caller's clock
 * @param random a number from 0 to 1
 */
export function nextStep(
  plan: CoursePlan,
  known: Knowledge,
  outcome: Outcome,
  { tries, nowMs, random }: { tries: number; nowMs: number; random: number },
): Step {
  const settled =
    outcome.kind === "record"
      ? settledByRecord(plan, outcome.record)
      : settledByTrouble(plan, known, outcome.trouble);
  if (settled !== undefined) return settled;
  if (nowMs >= plan.deadlineMs) return { kind: "fail", error: deadlineError(plan, known, outcome) };
  return { kind: "wait", forMs: Math.min(delayMs(plan.pace, tries, random), plan.deadlineMs - nowMs) };
}

/** A submission is settled by any record, everything else by a final one. */
function settledByRecord({ purpose }: CoursePlan, record: ExecutionRecord): Step | undefined {
  return purpose === "submit" || isTerminal(record) ? { kind: "settled", record } : undefined;
}

function settledByTrouble({ purpose, id }: CoursePlan, known: Knowledge, trouble: Trouble): Step | undefined {
  const repeats = trouble.repeat === "always" || (trouble.repeat === "reads" && purpose !== "submit");
  return repeats ? undefined : { kind: "fail", error: callError(id, trouble, known) };
}

/** The error of a call, with what is known from all calls. */
export function callError(id: string, trouble: Trouble, known: Knowledge): CallError {
  if (!known.accepted || trouble.code !== "CELLKIT_EXECUTION_UNKNOWN_EXECUTION") {
    return new CallError({ ...trouble, sent: known.sent });
  }
  return new CallError({
    ...trouble,
    sent: "yes",
    next: "operator",
    what: `the router does not know ${id}, of which it gave a record before`,
    advice: "its ledger was lost or replaced; an operator has to look, nothing may be submitted again",
  });
}

const waitedFor: Readonly<Record<Purpose, string>> = {
  submit: "was not accepted",
  result: "has not ended",
  cancel: "is not known to have ended after its cancellation",
};

function deadlineError({ purpose, id }: CoursePlan, known: Knowledge, outcome: Outcome): DeadlineError {
  const what = `${id} ${waitedFor[purpose]} in the time it was given`;
  if (outcome.kind === "record") return new DeadlineError(what, { sent: "yes", next: "same-id" });
  const { trouble } = outcome;
  return new DeadlineError(
    what,
    { sent: known.sent, next: trouble.next },
    { cause: callError(id, trouble, known) },
  );
}
