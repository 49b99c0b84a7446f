/**
 * Judges histories in which nothing is retired. There an id has one state change in its life, from free to bound, so a history is
 * linearizable exactly if some call can have made the binding that all answers show, at a moment after the beginning of every call that
 * found the id free, and before the end of every call that found it bound. That takes no search; histories with retirements need one.
 */
import { LedgerOptionError } from "../errors.ts";
import type { HistoryOperation } from "./history.ts";

/** An id whose answers no ledger could have given. */
export interface HistoryProblem {
  /** The lowercase hex BLAKE3-256 of the id. */
  key: string;
  problem: string;
}

/**
 * @param operations of all callers, on a ledger that was empty before
 * @returns one problem for each id that has one; none if the history is linearizable
 * @throws LedgerOptionError (CELLKIT_LEDGER_OPTION) for a history with retirements or sweeps
 */
export function checkClaimHistory(operations: readonly HistoryOperation[]): HistoryProblem[] {
  const byKey = new Map<string, HistoryOperation[]>();
  for (const operation of operations) {
    if (operation.key === undefined || operation.kind === "retire")
      throw new LedgerOptionError(
        `checkClaimHistory judges histories without retirements; this one has a ${operation.kind}`,
      );
    const own = byKey.get(operation.key) ?? [];
    own.push(operation);
    byKey.set(operation.key, own);
  }
  return [...byKey].flatMap(([key, own]) => {
    const problem = findProblem(own);
    return problem === undefined ? [] : [{ key, problem }];
  });
}

/** What is wrong with the history of one id; undefined if nothing. */
function findProblem(operations: readonly HistoryOperation[]): string | undefined {
  const answered = operations.filter(({ answer }) => answer !== null);
  const makers = answered.filter(({ answer }) => answer?.kind === "new" || answer?.kind === "added");
  if (makers.length > 1) return `${makers.length} calls were told that they made its record`;
  const bound = answered.filter(seesBinding);
  if (bound.length === 0) return undefined;
  const lost = operations.filter(({ answer }) => answer === null || answer.kind === "maybe");
  const candidates = makers.length === 1 ? makers : lost.filter(({ backend }) => backend !== undefined);
  const free = answered.filter(({ answer }) => answer?.kind === "absent" || answer?.kind === "full");
  let problem = "its record is seen, and nobody can have made it";
  for (const maker of candidates) {
    const found = problemWith(maker, bound, free);
    if (found === undefined) return undefined;
    problem = found;
  }
  return problem;
}

function seesBinding({ answer }: HistoryOperation): boolean {
  return answer !== null && (answer.kind === "conflict" || "backend" in answer);
}

/** Why this call cannot have made the record that the others saw. */
function problemWith(
  maker: HistoryOperation,
  bound: readonly HistoryOperation[],
  free: readonly HistoryOperation[],
): string | undefined {
  const { backend, bodyHash } = maker;
  for (const { kind, answer, ...asked } of bound) {
    if (answer === null) continue;
    if ("backend" in answer) {
      if (answer.backend !== backend || answer.bodyHash !== bodyHash)
        return `${answer.kind} named ${answer.backend} and ${answer.bodyHash}, its record ${backend} and ${bodyHash}`;
      if (kind !== "lookup" && asked.bodyHash !== bodyHash) return `${answer.kind} for other bytes`;
    } else if (asked.bodyHash === bodyHash && (kind === "claim" || asked.backend === backend))
      return "a conflict for the same binding";
  }
  const notBefore = Math.max(maker.calledUs, ...free.map(({ calledUs }) => calledUs));
  const notAfter = Math.min(...bound.map(({ returnedUs }) => returnedUs ?? Number.POSITIVE_INFINITY));
  if (notBefore > notAfter)
    return `its record was seen ${(notBefore - notAfter).toFixed(1)} µs before it can have been made, or was gone afterwards`;
  return undefined;
}
