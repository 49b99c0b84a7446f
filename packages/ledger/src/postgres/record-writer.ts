/** How a record gets into the table exactly once, whatever happens to the connection. */
import type { Owner } from "../ledger.ts";
import type { Ask, CallState } from "./connections.ts";
import { AttemptFailure, GROUPING_ERROR, sqlState, UNIQUE_VIOLATION } from "./failure.ts";
import { checkMarker, KEY_COLUMNS, type LedgerStatements, readTotal } from "./table.ts";

/** A record to be written, and the nonce that is its writer's alone. */
export interface NewRecord {
  key: string;
  owner: Owner;
  /** Random and of this one call: a row that carries it was written by this call, by whichever of its tries. */
  nonce: string;
}

/** `written`: by this call, and it lasts. `taken`: the key has a row of another claim. `full`: nothing was written. */
export type Written = "written" | "taken" | "full";

/**
 * Writes a record, one INSERT that commits by itself. Safe to repeat: after a lost answer the next try either writes the row, or
 * waits at the primary key for the lost one to end and finds its nonce. Then a commit of its own must succeed
 * before the row counts: a row that is only visible may still be missing on a standby.
 */
export async function insertRecord(
  statements: LedgerStatements,
  { key, owner, nonce }: NewRecord,
  ask: Ask,
  state: CallState,
): Promise<Written> {
  try {
    const { count } = await ask(statements.insert(key, owner, nonce));
    if (count !== 1) await explainUnwritten(statements, ask, state);
    return "written";
  } catch (error) {
    if (sqlState(error) !== UNIQUE_VIOLATION) throw explainRefusal(error);
  }
  return (await confirmRecord(statements, { key, nonce }, ask, state)) ? "written" : "taken";
}

/**
 * The same under a capacity: those who count do it one after the other, by the lock of the marker's row, so that the
 * capacity is exact among all who open the ledger with it. Four round trips and a count for each new record.
 */
export async function insertRecordBelow(
  capacity: number,
  statements: LedgerStatements,
  { key, owner, nonce }: NewRecord,
  ask: Ask,
  state: CallState,
): Promise<Written> {
  if (await confirmRecord(statements, { key, nonce }, ask, state)) return "written";
  await ask({ text: "START TRANSACTION ISOLATION LEVEL READ COMMITTED" });
  if ((await ask(statements.lockMarker())).count !== 1) await explainUnwritten(statements, ask, state);
  if (readTotal(await ask(statements.countUpTo(capacity))) >= capacity) {
    await ask({ text: "ROLLBACK" });
    return "full";
  }
  try {
    const { count } = await ask({ ...statements.insert(key, owner, nonce), commits: false });
    if (count !== 1) await explainUnwritten(statements, ask, state);
  } catch (error) {
    if (sqlState(error) !== UNIQUE_VIOLATION) throw explainRefusal(error);
    await ask({ text: "ROLLBACK" });
    return "taken";
  }
  const { command } = await ask({ text: "COMMIT", commits: true });
  if (command !== "COMMIT")
    throw new AttemptFailure(`the transaction ended with ${command}`, { passing: true });
  return "written";
}

/**
 * Why the server took a statement and did not change the one row it had to. A trigger or a rule may have put the record elsewhere.
 * @throws AttemptFailure always
 */
async function explainUnwritten(statements: LedgerStatements, ask: Ask, state: CallState): Promise<never> {
  checkMarker(await ask(statements.marker()), statements.ledgerId);
  state.unknown = true;
  throw new AttemptFailure(
    "the server took the statement and did not write the row; remove triggers and rules from the ledger's table",
    { passing: false },
  );
}

/** A table without its primary key, which would have let the row in beside another one; any other error as it is. */
function explainRefusal(error: unknown): unknown {
  if (sqlState(error) !== GROUPING_ERROR) return error;
  return new AttemptFailure(
    `its table has no primary key (${KEY_COLUMNS.join(", ")}) any more, or a DEFERRABLE one, so that one id could be claimed twice: ` +
      "restore the table with its key (cellkit ledger sql prints it). Where copies of it were written to without, look for keys that occur twice first",
    { passing: false, cause: error },
  );
}

/** After a try with an unknown outcome: whether it wrote the row, and so that it lasts. */
async function confirmRecord(
  statements: LedgerStatements,
  { key, nonce }: Pick<NewRecord, "key" | "nonce">,
  ask: Ask,
  { unknown }: CallState,
): Promise<boolean> {
  return unknown && (await ask(statements.confirm(key, nonce))).count > 0;
}
