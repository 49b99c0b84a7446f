/**
 * - `final`: the owner has its final record. The only state in which nothing is left to do, beside `unclaimed`.
 * - `unclaimed`: the ledger has no owner, and no dispatcher that was asked has it: it was not submitted, as far as can be seen.
 * - `active`: the owner runs it.
 * - `interrupted`: the owner was restarted while it ran.
 * - `lost`: the owner has no record of it.
 * - `removed`: the owner is not in the list, and was not asked.
 * - `unrecorded`: a dispatcher has it, and the ledger no owner.
 * - `misplaced`: another dispatcher than the owner has it.
 * - `twice`: several dispatchers have it.
 * - `unknown`: whoever was to be asked gave no usable answer.
 * - `unreadable`: the ledger's record cannot be read.
 * - `invalid`: no router takes such an id.
 */
export type RunState =
  | "final"
  | "unclaimed"
  | "active"
  | "interrupted"
  | "lost"
  | "removed"
  | "unrecorded"
  | "misplaced"
  | "twice"
  | "unknown"
  | "unreadable"
  | "invalid";

/** What was found out about one id. */
export interface ReconciledRun {
  readonly id: string;
  readonly state: RunState;
  /** The owner in the ledger. */
  readonly owner: string | undefined;
  /** Where a dispatcher told it. */
  readonly phase: string | undefined;
  /** For people. */
  readonly detail: string;
}

/** What was found out in all. */
export interface ReconcileSummary {
  readonly runCount: number;
  readonly states: Readonly<Partial<Record<RunState, number>>>;
  /** Records in the ledger whose ids were not among those given, by owner: a ledger keeps hashes, so nobody can tell their ids. */
  readonly otherRecords: ReadonlyMap<string, number>;
  /** Entries in the ledger that are no readable records. */
  readonly unreadableCount: number;
}

/** Whether nothing is left to do about a run. */
export function isSettled({ state }: ReconciledRun): boolean {
  return state === "final" || state === "unclaimed";
}
