import fc from "fast-check";
import { expect, inject, test } from "vitest";
import { type AnswerName, answers } from "../../src/core/answer-table.ts";
import { classifyAnswer } from "../../src/core/classify-answer.ts";
import { inLightOf } from "../../src/core/contradiction.ts";
import {
  type CoursePurpose,
  type Knowledge,
  learn,
  nextStep,
  nothingKnown,
  type Outcome,
  perhapsSent,
} from "../../src/core/course.ts";
import { met as metOf, nothingMet } from "../../src/core/mutual-trust.ts";
import { delayMs } from "../../src/core/pace.ts";
import {
  clientRefusedTrouble,
  lostTrouble,
  unreachableTrouble,
  untrustedTrouble,
} from "../../src/core/trouble.ts";

const runs = { seed: inject("seed"), numRuns: inject("size") === "long" ? 50_000 : 1_000 };
const pace = { minMs: 100, maxMs: 5_000 };

const record = (phase: string): Outcome => ({ kind: "record", record: { requestId: "run-1", phase } });
const lost: Outcome = { kind: "trouble", trouble: lostTrouble("http://r", "reset") };
const unreachable: Outcome = { kind: "trouble", trouble: unreachableTrouble("http://r", "refused") };
const untrusted: Outcome = {
  kind: "trouble",
  trouble: untrustedTrouble("https://r", undefined, "SELF_SIGNED_CERT_IN_CHAIN"),
};
const refused: Outcome = {
  kind: "trouble",
  trouble: clientRefusedTrouble("https://r", undefined, "ERR_SSL_TLSV1_ALERT_UNKNOWN_CA"),
};
const times = (count: number, outcome: Outcome) => Array.from({ length: count }, () => outcome);
function told(name: AnswerName): Outcome {
  const [[status, [text] = []] = ["502", [""]]] = Object.entries<readonly string[]>(answers[name].texts);
  const body = new TextEncoder().encode(JSON.stringify({ error: text }));
  // What is said of reads alone means another thing as an answer to a submission.
  const purpose = name === "UNKNOWN_EXECUTION" || name === "ROUTE_UNKNOWN" ? "result" : "submit";
  return { kind: "trouble", trouble: classifyAnswer(Number(status), body, purpose) };
}
/** A 404 that answers a submission. */
function told404(error: string): Outcome {
  const body = new TextEncoder().encode(JSON.stringify({ error }));
  return { kind: "trouble", trouble: classifyAnswer(404, body, "submit") };
}
/** A 400 in words that nobody knows: a dispatcher's parser, or anything else that speaks JSON. */
const otherWords: Outcome = {
  kind: "trouble",
  trouble: classifyAnswer(400, new TextEncoder().encode('{"error":"bad request"}'), "submit"),
};

/** Plays outcomes until something is settled; `wait` is the end of a course that would go on. */
function play(purpose: CoursePurpose, outcomes: readonly Outcome[], from: Knowledge = nothingKnown): string {
  let known = from;
  let nowMs = 0;
  let last = "wait";
  let trust = nothingMet;
  for (const [index, met] of outcomes.entries()) {
    const outcome: Outcome =
      met.kind === "record" ? met : { ...met, trouble: inLightOf(known, met.trouble, purpose, "run-1") };
    known = learn(known, outcome, purpose);
    const plan = { purpose, id: "run-1", deadlineMs: 10_000, pace };
    trust = metOf(trust, outcome, nowMs);
    const step = nextStep(plan, known, outcome, { tries: index + 1, nowMs, random: 0.5, trust });
    if (step.kind === "settled") return `settled ${step.record.phase}`;
    if (step.kind === "fail") return `${step.error.code.slice(18)} ${step.error.sent} ${step.error.next}`;
    nowMs += step.forMs;
    last = step.kind;
  }
  return last;
}

test.each<[CoursePurpose, Outcome[], string]>([
  ["submit", [record("Admitting")], "settled Admitting"],
  ["submit", [lost, record("Succeeded")], "settled Succeeded"],
  [
    "submit",
    [told("OWNERSHIP_UNAVAILABLE"), unreachable, told("OUTCOME_UNKNOWN"), told("OWNER_LOST")],
    "wait",
  ],
  ["submit", [told("UNAUTHORIZED")], "UNAUTHORIZED maybe same-id"],
  ["submit", [lost, told("UNAUTHORIZED")], "UNAUTHORIZED maybe same-id"],
  ["submit", [lost, told("LEDGER_FULL")], "LEDGER_FULL maybe operator"],
  ["submit", [lost, told("ID_CONFLICT")], "ID_CONFLICT no never"],
  ["submit", [told("OUTCOME_UNKNOWN"), told("ID_CONFLICT")], "ID_CONFLICT maybe operator"],
  ["submit", [told("OWNER_LOST"), lost, told("ID_CONFLICT")], "ID_CONFLICT maybe operator"],
  ["submit", [told("WORKER_UNAVAILABLE"), told("ID_CONFLICT")], "ID_CONFLICT yes operator"],
  ["submit", [told("AT_CAPACITY")], "AT_CAPACITY yes never"],
  ["submit", [lost, told("AT_CAPACITY")], "AT_CAPACITY yes never"],
  ["submit", [told("OUTCOME_UNKNOWN"), told("AT_CAPACITY")], "AT_CAPACITY yes operator"],
  ["submit", [told("OWNER_LOST"), told("REQUEST_REFUSED")], "REQUEST_REFUSED yes operator"],
  ["submit", [told("DISPATCHER_CREDENTIALS"), told("REQUEST_REFUSED")], "REQUEST_REFUSED yes operator"],
  ["submit", [told("OUTCOME_UNKNOWN"), lost, told("LEDGER_FULL")], "LEDGER_FULL maybe operator"],
  ["submit", [told("OUTCOME_UNKNOWN"), told("ID_REFUSED")], "ID_REFUSED maybe operator"],
  ["submit", [told("OUTCOME_UNKNOWN"), told("WORKER_UNAVAILABLE")], "WORKER_UNAVAILABLE yes operator"],
  ["submit", [told("DISPATCHER_CREDENTIALS"), told("ID_CONFLICT")], "ID_CONFLICT maybe operator"],
  ["submit", [told("DISPATCHER_CONFLICT"), told("ID_CONFLICT")], "DISPATCHER_CONFLICT yes operator"],
  ["submit", [told("DISPATCHER_CONFLICT")], "DISPATCHER_CONFLICT yes operator"],
  ["submit", [otherWords], "REQUEST_REFUSED yes never"],
  ["submit", [unreachable, otherWords], "REQUEST_REFUSED yes never"],
  ["submit", [lost, otherWords], "UNEXPECTED_ANSWER maybe operator"],
  ["submit", [told("OUTCOME_UNKNOWN"), otherWords], "UNEXPECTED_ANSWER maybe operator"],
  ["submit", [told404("not found")], "UNEXPECTED_ANSWER maybe operator"],
  ["submit", [told404("configured protocol route required")], "ROUTE_UNKNOWN no never"],
  ["submit", [told404("unknown execution"), told("OWNER_LOST")], "wait"],
  ["submit", [told404("unknown execution"), record("Running")], "settled Running"],
  ["submit", [told404("unknown execution"), told("ID_CONFLICT")], "ID_CONFLICT maybe operator"],
  ["submit", [told("INTERRUPTED")], "INTERRUPTED yes operator"],
  ["submit", [told("JOURNAL_UNAVAILABLE")], "JOURNAL_UNAVAILABLE maybe operator"],
  ["result", [record("Admitting"), record("Running"), record("Failed")], "settled Failed"],
  [
    "result",
    [record("Tomorrow"), lost, told("UNAUTHORIZED"), told("OWNER_REMOVED"), told("NOT_DURABLE")],
    "wait",
  ],
  ["result", [told("JOURNAL_UNAVAILABLE"), record("Cancelled")], "settled Cancelled"],
  ["result", [told("UNKNOWN_EXECUTION")], "UNKNOWN_EXECUTION no same-id"],
  ["result", [lost, told("UNKNOWN_EXECUTION")], "UNKNOWN_EXECUTION no same-id"],
  ["result", [told("OWNER_LOST"), told("UNKNOWN_EXECUTION")], "UNKNOWN_EXECUTION maybe operator"],
  ["result", [record("Running"), told("UNKNOWN_EXECUTION")], "UNKNOWN_EXECUTION yes operator"],
  ["result", [told("ROUTE_UNKNOWN")], "ROUTE_UNKNOWN no never"],
  ["cancel", [record("Cancelling"), record("Cancelled")], "settled Cancelled"],
  ["cancel", [record("Cancelling"), told("OWNER_LOST"), record("Succeeded")], "settled Succeeded"],
  ["cancel", [told("UNKNOWN_EXECUTION")], "UNKNOWN_EXECUTION no same-id"],
])("%s: case %#", (purpose, outcomes, end) => {
  expect(play(purpose, outcomes)).toBe(end);
});

test.each<[CoursePurpose, Outcome, string]>([
  ["submit", lost, "DEADLINE maybe same-id"],
  ["submit", unreachable, "DEADLINE no same-id"],
  ["submit", told("OWNER_LOST"), "DEADLINE maybe operator"],
  ["submit", told404("unknown execution"), "DEADLINE maybe operator"],
  ["result", record("Running"), "DEADLINE yes same-id"],
  ["cancel", record("Cancelling"), "DEADLINE yes same-id"],
])("%s: at the deadline the last try decides what is next (case %#)", (purpose, outcome, end) => {
  expect(play(purpose, times(40, outcome))).toBe(end);
});

test.each<[string, CoursePurpose, Outcome[], string]>([
  ["from the start", "submit", times(40, untrusted), "ROUTER_UNTRUSTED no same-id"],
  ["from the start", "result", times(40, untrusted), "ROUTER_UNTRUSTED no same-id"],
  ["ours, from the start", "submit", times(40, refused), "CLIENT_REFUSED no same-id"],
  ["ours, from the start", "cancel", times(40, refused), "CLIENT_REFUSED no same-id"],
  [
    "one and then the other",
    "submit",
    [...times(5, untrusted), ...times(35, refused)],
    "CLIENT_REFUSED no same-id",
  ],
  ["while files are replaced", "submit", [...times(8, untrusted), record("Admitting")], "settled Admitting"],
  ["after connections that failed", "submit", [...times(8, unreachable), untrusted], "wait"],
  [
    "after an answer",
    "submit",
    [told("OWNERSHIP_UNAVAILABLE"), ...times(40, untrusted)],
    "DEADLINE no same-id",
  ],
  ["after a record", "result", [record("Running"), ...times(40, refused)], "DEADLINE yes same-id"],
])(
  "a certificate that is not taken ends a course after 5 s of nothing else: %s (%s)",
  (_, purpose, outcomes, end) => {
    expect(play(purpose, outcomes)).toBe(end);
  },
);

test("the last try before that is made when the 5 s are over", () => {
  const plan = { purpose: "submit", id: "run-1", deadlineMs: 60_000, pace } as const;
  const trust = metOf(nothingMet, untrusted, 1_000);
  const at = (nowMs: number) =>
    nextStep(plan, nothingKnown, untrusted, { tries: 30, nowMs, random: 0.5, trust });
  expect(at(1_000)).toEqual({ kind: "wait", forMs: 5_000 });
  expect(at(5_990)).toEqual({ kind: "wait", forMs: 10 });
  expect(at(6_000)).toMatchObject({ kind: "fail" });
});

test.each<[Outcome, string]>([
  [
    unreachable,
    "run-1 was not accepted in the time it was given: no connection to http://r (refused) (CELLKIT_EXECUTION_UNREACHABLE); check its address, port and scheme, and that it runs; then ask again under the same id",
  ],
  [
    told("OWNER_LOST"),
    'run-1 was not accepted in the time it was given: the answer was 503 "recorded owner unavailable or outcome lost; no reroute or replay" (CELLKIT_EXECUTION_OWNER_LOST); the owner cannot be reached or has forgotten the run; reconcile it, never use a new id; let an operator look',
  ],
])("at the deadline it is told what the last try met, and what to do (case %#)", (outcome, message) => {
  const plan = { purpose: "submit", id: "run-1", deadlineMs: 1, pace } as const;
  const step = nextStep(plan, learn(nothingKnown, outcome, "submit"), outcome, {
    tries: 1,
    nowMs: 1,
    random: 0.5,
    trust: nothingMet,
  });
  expect(step).toMatchObject({ kind: "fail", error: { message } });
});

test.each<[string, Knowledge, CoursePurpose, Outcome[], string]>([
  ["what others sent", perhapsSent, "submit", [told("UNAUTHORIZED")], "UNAUTHORIZED maybe same-id"],
  [
    "what others sent, and who refuses?",
    perhapsSent,
    "submit",
    [otherWords],
    "UNEXPECTED_ANSWER maybe operator",
  ],
  ["what others sent, refused now", perhapsSent, "submit", [told("AT_CAPACITY")], "AT_CAPACITY yes never"],
  [
    "a record, and then a first submission",
    learn(nothingKnown, record("Running"), "submit"),
    "submit",
    [told("AT_CAPACITY")],
    "AT_CAPACITY yes operator",
  ],
  [
    "a refusal, read afterwards",
    learn(nothingKnown, told("REQUEST_REFUSED"), "submit"),
    "result",
    [told("UNKNOWN_EXECUTION")],
    "UNKNOWN_EXECUTION yes operator",
  ],
  [
    "a refusal in words of others is no claim",
    learn(nothingKnown, otherWords, "submit"),
    "result",
    [told("UNKNOWN_EXECUTION")],
    "UNKNOWN_EXECUTION yes same-id",
  ],
  [
    "a dispatcher's conflict, read afterwards",
    learn(nothingKnown, told("DISPATCHER_CONFLICT"), "submit"),
    "cancel",
    [told("UNKNOWN_EXECUTION")],
    "UNKNOWN_EXECUTION yes operator",
  ],
  [
    "a run without audit, read afterwards",
    learn(perhapsSent, told("NO_AUDIT"), "result"),
    "result",
    [told("UNKNOWN_EXECUTION")],
    "UNKNOWN_EXECUTION yes operator",
  ],
  ["an audit that is not there", perhapsSent, "result", [told("NO_AUDIT")], "NO_AUDIT yes same-id"],
  ["what others sent, in vain", perhapsSent, "submit", [told("ID_CONFLICT")], "ID_CONFLICT no never"],
  ["a read that tells nothing", perhapsSent, "result", [told("ROUTE_UNKNOWN")], "ROUTE_UNKNOWN maybe never"],
  [
    "an id that nobody sent",
    perhapsSent,
    "result",
    [unreachable, told("UNKNOWN_EXECUTION")],
    "UNKNOWN_EXECUTION no same-id",
  ],
  [
    "a lost try, not there yet",
    learn(nothingKnown, lost, "submit"),
    "result",
    [told("UNKNOWN_EXECUTION")],
    "UNKNOWN_EXECUTION maybe same-id",
  ],
  [
    "a lost try of what others sent",
    learn(perhapsSent, lost, "submit"),
    "cancel",
    [told("UNKNOWN_EXECUTION")],
    "UNKNOWN_EXECUTION maybe same-id",
  ],
  [
    "an owner that was told of",
    learn(nothingKnown, told("OUTCOME_UNKNOWN"), "submit"),
    "cancel",
    [told("UNKNOWN_EXECUTION")],
    "UNKNOWN_EXECUTION maybe operator",
  ],
])("%s", (_, from, purpose, outcomes, end) => {
  expect(play(purpose, outcomes, from)).toBe(end);
});

test("what contradicts an earlier claim says so, and not that the id is used up", () => {
  const known = learn(nothingKnown, told("OUTCOME_UNKNOWN"), "submit");
  const met = told("AT_CAPACITY");
  const trouble = met.kind === "trouble" ? inLightOf(known, met.trouble, "submit", "run-1") : undefined;
  expect(trouble).toMatchObject({
    next: "operator",
    what: 'the answer was 503 "node at capacity", as to an id that is new to it, for run-1, which a router had bound to a dispatcher before',
  });
  expect(trouble?.advice).not.toContain("new id");
});

test("once a try may have arrived, nothing but a conflict makes that unsaid", () => {
  const some = fc.constantFrom<AnswerName>(
    "OWNERSHIP_UNAVAILABLE",
    "UNAUTHORIZED",
    "ROUTER_CREDENTIALS",
    "OWNER_LOST",
  );
  fc.assert(
    fc.property(fc.array(some), fc.array(some), (before, after) => {
      const known = [...before.map(told), lost, ...after.map(told)].reduce<Knowledge>(
        (at, met) => learn(at, met, "submit"),
        nothingKnown,
      );
      expect(known.sent).not.toBe("no");
    }),
    runs,
  );
});

test("a course always ends: settled, failed, or with its deadline, and never waits beyond it", () => {
  const names = Object.keys(answers) as AnswerName[];
  const outcome = fc.oneof(
    fc.constantFrom(...names.map(told)),
    fc.constantFrom(lost, unreachable, untrusted, refused, record("Running"), record("Succeeded")),
  );
  const purpose = fc.constantFrom<CoursePurpose>("submit", "result", "cancel");
  fc.assert(
    fc.property(
      purpose,
      fc.array(outcome, { minLength: 200, maxLength: 200 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (what, met, random) => {
        let known = nothingKnown;
        let nowMs = 0;
        let trust = nothingMet;
        for (const [index, each] of met.entries()) {
          known = learn(known, each, what);
          const plan = { purpose: what, id: "run-1", deadlineMs: 10_000, pace };
          trust = metOf(trust, each, nowMs);
          const step = nextStep(plan, known, each, { tries: index + 1, nowMs, random, trust });
          if (step.kind !== "wait") return;
          expect(step.forMs).toBeGreaterThan(0);
          nowMs += step.forMs;
          expect(nowMs).toBeLessThanOrEqual(10_000);
        }
        throw new TypeError("it went on for ever");
      },
    ),
    runs,
  );
});

test("pauses grow from the shortest to the longest and stay within both", () => {
  expect([1, 2, 3, 5, 9, 40].map((tries) => delayMs(pace, tries, 0.5))).toEqual([
    100, 160, 256, 655, 4295, 5000,
  ]);
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10_000 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (tries, random) => {
        const ms = delayMs(pace, tries, random);
        expect(ms).toBeGreaterThanOrEqual(100);
        expect(ms).toBeLessThanOrEqual(5_000);
      },
    ),
    runs,
  );
});
