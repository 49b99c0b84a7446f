// An answer beside what was known before it. A refusal proves that an id is used up, or free, only while nothing was known that it
// cannot be true together with.
import { type AnswerCode, answers } from "./answer-table.ts";
import type { Knowledge } from "./course.ts";
import type { Purpose, Trouble } from "./trouble.ts";

/** What is answered where an id was never seen before, or belongs to others, and not where the router had bound it to these bytes. */
const toAnotherId: ReadonlySet<string> = new Set<AnswerCode>([
  "CELLKIT_EXECUTION_UNKNOWN_EXECUTION",
  "CELLKIT_EXECUTION_ID_CONFLICT",
  "CELLKIT_EXECUTION_ID_REFUSED",
  "CELLKIT_EXECUTION_LEDGER_FULL",
  "CELLKIT_EXECUTION_REQUEST_REFUSED",
  "CELLKIT_EXECUTION_AT_CAPACITY",
  "CELLKIT_EXECUTION_ADMISSION_UNAVAILABLE",
  "CELLKIT_EXECUTION_WORKER_UNAVAILABLE",
]);

/** The trouble that an answer is to whoever knew this before the try. */
export function inLightOf(before: Knowledge, trouble: Trouble, purpose: Purpose, id: string): Trouble {
  const isRefusal = trouble.code === "CELLKIT_EXECUTION_REQUEST_REFUSED";
  if (isRefusal && purpose === "submit" && trouble.wordsKnown === false && before.sent !== "no") {
    // A dispatcher has words of its own for a request that it cannot read. So has anything else on the way, which knows nothing of
    // the earlier try.
    const { sent, next, repeat } = answers.UNEXPECTED_ANSWER;
    const advice =
      "an earlier try may have arrived, and this need not be a dispatcher's refusal; find out what answers, never use a new id";
    return { ...trouble, code: "CELLKIT_EXECUTION_UNEXPECTED_ANSWER", sent, next, repeat, advice };
  }
  return before.claimed && toAnotherId.has(trouble.code) ? ledgerLost(trouble, id) : trouble;
}

function ledgerLost(trouble: Trouble, id: string): Trouble {
  const others =
    trouble.code === "CELLKIT_EXECUTION_ID_CONFLICT" ? ", or the id was another's all the time" : "";
  return {
    ...trouble,
    next: "operator",
    repeat: "not",
    what: `${whatIsSaid(trouble, id)}, which a router had bound to a dispatcher before`,
    advice: `its ledger was lost or replaced${others}; an operator has to look, nothing may be submitted again`,
  };
}

function whatIsSaid({ code, what }: Trouble, id: string): string {
  if (code === "CELLKIT_EXECUTION_UNKNOWN_EXECUTION") return `the router does not know ${id}`;
  if (code === "CELLKIT_EXECUTION_ID_CONFLICT") return `the router has other bytes for ${id}`;
  return `${what}, as to an id that is new to it, for ${id}`;
}
