// The course of a submission, of waiting for a result, and of a cancellation that has to end: given what the last try met, what
// to do next. Nothing here waits or sends. The id and the bytes are no part of it: they never change, so a try can only be made
// again as it was, and a router answers a repeated submission by reading.
import { CallError, DeadlineError, type ExecutionError } from "../errors.ts";
import type { AnswerCode } from "./answer-table.ts";
import { graceEndMs, type TrustMet } from "./mutual-trust.ts";
import { delayMs, type Pace } from "./pace.ts";
import { type ExecutionRecord, isTerminal } from "./record.ts";
import { type Purpose, type Sent, type Trouble, worseSent } from "./trouble.ts";

/** What one try met: a record, or trouble. */
export type Outcome =
  | { readonly kind: "record"; readonly record: ExecutionRecord }
  | { readonly kind: "trouble"; readonly trouble: Trouble };

/** What to do next. */
export type Step =
  | { readonly kind: "settled"; readonly record: ExecutionRecord }
  | { readonly kind: "wait"; readonly forMs: number }
  | { readonly kind: "fail"; readonly error: ExecutionError };

/** What a course is for. */
export type CoursePurpose = Exclude<Purpose, "prewarm">;

/** What is known of an execution across all calls of one handle. */
export interface Knowledge {
  /** Whether a dispatcher may have got it. */
  readonly sent: Sent;
  /** Whether a router is known to have bound the id to a dispatcher: from then on, not to know it is a loss. */
  readonly claimed: boolean;
  /** Whether `sent` is only what has to be assumed of others, and not what happened to a try of this handle. */
  readonly assumed: boolean;
}

/** Of a request that nobody can have sent before. */
export const nothingKnown: Knowledge = { sent: "no", claimed: false, assumed: false };

/** Of an id that somebody else may have submitted: another process, or this one before it was restarted. */
export const perhapsSent: Knowledge = { sent: "maybe", claimed: false, assumed: true };

export interface CoursePlan {
  readonly purpose: CoursePurpose;
  readonly id: string;
  /** On the caller's clock: no try starts later. */
  readonly deadlineMs: number;
  readonly pace: Pace;
}

/** Answers that are only given when a router has bound the id. */
const provesClaim: ReadonlySet<string> = new Set<AnswerCode>([
  "CELLKIT_EXECUTION_OUTCOME_UNKNOWN",
  "CELLKIT_EXECUTION_PIN_CONFLICT",
  "CELLKIT_EXECUTION_OWNER_REMOVED",
  "CELLKIT_EXECUTION_OWNER_LOST",
  "CELLKIT_EXECUTION_DISPATCHER_CONFLICT",
  "CELLKIT_EXECUTION_DISPATCHER_CREDENTIALS",
  "CELLKIT_EXECUTION_REQUEST_REFUSED",
  "CELLKIT_EXECUTION_AT_CAPACITY",
  "CELLKIT_EXECUTION_NO_AUDIT",
  "CELLKIT_EXECUTION_INTERRUPTED",
  "CELLKIT_EXECUTION_JOURNAL_UNAVAILABLE",
  "CELLKIT_EXECUTION_NOT_DURABLE",
  "CELLKIT_EXECUTION_ADMISSION_UNAVAILABLE",
  "CELLKIT_EXECUTION_WORKER_UNAVAILABLE",
]);

/** A dispatcher's own words, which a router passes on, prove it, too; a refusal in words that are not known may be anybody's. */
function isProof({ code, wordsKnown }: Trouble): boolean {
  return provesClaim.has(code) && wordsKnown !== false;
}

/** What has to be assumed once an answer to another handle has said that the id is bound. */
export function boundElsewhere(known: Knowledge): Knowledge {
  return { sent: worseSent(known.sent, "maybe"), claimed: true, assumed: false };
}

/** Whether an answer says that the id is bound, to these bytes or to others. */
export function tellsOfClaim(known: Knowledge, outcome: { readonly kind: "record" } | Outcome): boolean {
  const code = "trouble" in outcome ? outcome.trouble.code : undefined;
  return known.claimed || code === "CELLKIT_EXECUTION_ID_CONFLICT";
}

/** What is known after a try. */
export function learn(
  before: Knowledge,
  outcome: { readonly kind: "record" } | Extract<Outcome, { kind: "trouble" }>,
  purpose: CoursePurpose,
): Knowledge {
  if (outcome.kind === "record") return { sent: "yes", claimed: true, assumed: false };
  const { code, sent } = outcome.trouble;
  const together = worseSent(before.sent, sent);
  if (isProof(outcome.trouble)) return { sent: together, claimed: true, assumed: false };
  // Other failures of a read deliver nothing, and tell nothing of the execution.
  if (purpose !== "submit") return before;
  // A conflict proves that these bytes were never taken, though earlier tries had no answer: the id is bound to others for ever.
  // Not so when a router has said that it had bound the id: then its ledger is another one.
  if (code === "CELLKIT_EXECUTION_ID_CONFLICT" && before.sent !== "yes" && !before.claimed)
    return nothingKnown;
  return sent === "no" ? before : { ...before, sent: together, assumed: false };
}

/**
 * The next step.
 *
 * @param known what is known after this outcome
 * @param tries how many tries were made, this one included
 * @param nowMs the caller's clock
 * @param random a number from 0 to 1
 * @param trust what this course has met of certificates, this try included
 */
export function nextStep(
  plan: CoursePlan,
  known: Knowledge,
  outcome: Outcome,
  { tries, nowMs, random, trust }: { tries: number; nowMs: number; random: number; trust: TrustMet },
): Step {
  const leftMs = Math.min(plan.deadlineMs, graceEndMs(trust)) - nowMs;
  const settled =
    outcome.kind === "record"
      ? settledByRecord(plan, outcome.record)
      : settledByTrouble(plan, known, outcome.trouble, nowMs < graceEndMs(trust));
  if (settled !== undefined) return settled;
  if (nowMs >= plan.deadlineMs) return { kind: "fail", error: deadlineError(plan, known, outcome) };
  return { kind: "wait", forMs: Math.min(delayMs(plan.pace, tries, random), leftMs) };
}

/** A submission is settled by any record, everything else by a final one. */
function settledByRecord({ purpose }: CoursePlan, record: ExecutionRecord): Step | undefined {
  return purpose === "submit" || isTerminal(record) ? { kind: "settled", record } : undefined;
}

function settledByTrouble(
  { purpose }: CoursePlan,
  known: Knowledge,
  trouble: Trouble,
  inGrace: boolean,
): Step | undefined {
  const repeats = { always: true, briefly: inGrace, reads: purpose !== "submit", not: false };
  return repeats[trouble.repeat] ? undefined : { kind: "fail", error: callError(trouble, known) };
}

/** The error of a call, with what is known from all calls. */
export function callError(trouble: Trouble, known: Knowledge): CallError {
  const isUnknown = trouble.code === "CELLKIT_EXECUTION_UNKNOWN_EXECUTION";
  // What others may have sent has not arrived; a try of this handle that had no answer may still be on its way.
  return new CallError({ ...trouble, sent: isUnknown && known.assumed ? "no" : known.sent });
}

const waitedFor: Readonly<Record<CoursePurpose, string>> = {
  submit: "was not accepted",
  result: "has not ended",
  cancel: "is not known to have ended after its cancellation",
};

function deadlineError({ purpose, id }: CoursePlan, known: Knowledge, outcome: Outcome): DeadlineError {
  const what = `${id} ${waitedFor[purpose]} in the time it was given`;
  if (outcome.kind === "record") return new DeadlineError(what, { sent: "yes", next: "same-id" });
  const { trouble } = outcome;
  return new DeadlineError(
    `${what}: ${trouble.what} (${trouble.code}); ${trouble.advice}`,
    { sent: known.sent, next: trouble.next },
    { cause: callError(trouble, known) },
  );
}
