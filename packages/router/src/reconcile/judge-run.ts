// What a ledger and dispatchers say together of one id. Nothing here asks anybody.
import { z } from "zod";
import type { RunState } from "./reconciled-run.ts";

/** A dispatcher's answer to `GET /v1/executions/ID`; `silent`: it gave none that is usable. */
export type RecordAnswer = { readonly status: number; readonly body: string } | { readonly silent: string };

/** What one dispatcher knows of an id. */
export type Knowledge =
  | { readonly kind: "record"; readonly phase: string; readonly isFinal: boolean }
  | { readonly kind: "none" }
  | { readonly kind: "interrupted" }
  | { readonly kind: "unknown"; readonly why: string };

const finalPhases: readonly string[] = ["Succeeded", "Failed", "Refused", "Cancelled"];
const record = z.object({ requestId: z.string(), phase: z.string().min(1) });
const refusal = z.object({ error: z.string() });

/** Reads an answer. One that is about another id is no answer. */
export function knowledgeOf(id: string, answer: RecordAnswer): Knowledge {
  if ("silent" in answer) return { kind: "unknown", why: answer.silent };
  const { status } = answer;
  const body = parsed(answer.body);
  if (status === 200 || status === 202) {
    const found = record.safeParse(body).data;
    if (found?.requestId !== id) return { kind: "unknown", why: `status ${status} without its record` };
    return { kind: "record", phase: found.phase, isFinal: finalPhases.includes(found.phase) };
  }
  const error = refusal.safeParse(body).data?.error ?? "";
  if (status === 404 && error === "unknown execution") return { kind: "none" };
  if (status === 503 && error.startsWith("interrupted execution")) return { kind: "interrupted" };
  return { kind: "unknown", why: `status ${status}${error === "" ? "" : `, ${JSON.stringify(error)}`}` };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What is known of an id when everybody was asked who was to be. */
export interface RunEvidence {
  /** The recorded owner; undefined: the ledger has never heard of the id. */
  readonly owner: string | undefined;
  /** Whether the owner is in the list; without that it is not asked. */
  readonly isListed: boolean;
  readonly answers: ReadonlyMap<string, Knowledge>;
}

/** The state of a run, and words for it. */
export function judgeRun({ owner, isListed, answers }: RunEvidence): {
  readonly state: RunState;
  readonly phase?: string;
  readonly detail: string;
} {
  const having = [...answers].filter(([, { kind }]) => kind === "record" || kind === "interrupted");
  if (having.length > 1)
    return {
      state: "twice",
      detail: `${having.map(([origin]) => origin).join(" and ")} have it: it may have run on each`,
    };
  const unasked = [...answers].flatMap(([origin, its]) =>
    its.kind === "unknown" ? [`${origin}: ${its.why}`] : [],
  );
  if (owner === undefined) {
    const [found] = having;
    if (found !== undefined)
      return {
        state: "unrecorded",
        ...phaseOf(found[1]),
        detail: `${found[0]} has it, and the ledger does not: it came before this ledger, or past it. Never submit it through this ledger, not when it is final either: it would run again`,
      };
    if (answers.size === 0)
      return { state: "unknown", detail: "no owner is recorded, and there is no dispatcher to ask" };
    if (unasked.length > 0)
      return { state: "unknown", detail: `no owner is recorded; ${unasked.join("; ")}` };
    return { state: "unclaimed", detail: "no owner is recorded, and no dispatcher that was asked has it" };
  }
  const elsewhere = having.find(([origin]) => origin !== owner);
  if (elsewhere !== undefined)
    return {
      state: "misplaced",
      ...phaseOf(elsewhere[1]),
      detail: `${owner} is its owner, and ${elsewhere[0]} has it`,
    };
  if (!isListed)
    return {
      state: "removed",
      detail: `${owner} is its owner and is not in the list: put it back to read it`,
    };
  const its = answers.get(owner);
  switch (its?.kind) {
    case "record":
      return { state: its.isFinal ? "final" : "active", phase: its.phase, detail: `on ${owner}` };
    case "interrupted":
      return {
        state: "interrupted",
        detail: `${owner} was restarted while it ran: find out on the node what it did; it may have had effects`,
      };
    case "none":
      return {
        state: "lost",
        detail: `${owner} is its owner and has no record: it never arrived, was refused, or the journal was lost. A new id could run it twice`,
      };
    default:
      return { state: "unknown", detail: `its owner: ${its?.why ?? `${owner} was not asked`}` };
  }
}

function phaseOf(knowledge: Knowledge): { phase?: string } {
  return knowledge.kind === "record" ? { phase: knowledge.phase } : {};
}
