/** What an entry of a ledger is. */
import type { LedgerCallOptions, LedgerEntry, LedgerReader } from "../ledger.ts";

/**
 * - `record`: a binding
 * - `corrupt`: a record that cannot be read; its id is taken all the same
 * - `mark`: a mark for a sweep without a record; the next sweep removes it
 * - `foreign`: nothing of a ledger's
 */
export type EntryKind = "record" | "corrupt" | "mark" | "foreign";

/** Asks the ledger again where an entry alone does not tell a mark from a marked record that cannot be read. */
export async function entryKind(
  ledger: LedgerReader,
  { key, owner, marked }: LedgerEntry,
  options: LedgerCallOptions,
): Promise<EntryKind> {
  if (!/^[0-9a-f]{64}$/.test(key)) return "foreign";
  if (owner !== undefined) return "record";
  if (!marked) return "corrupt";
  const record = await ledger.entry(key, options);
  if (record === undefined) return "mark";
  return record.owner === undefined ? "corrupt" : "record";
}
