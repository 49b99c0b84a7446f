/** Whether a server keeps what it acknowledges. Asked of each connection when it is made, and of the table when a ledger is opened. */
import { LedgerUnsupportedError } from "../errors.ts";
import type { Ask } from "./connections.ts";
import { AttemptFailure } from "./failure.ts";
import { KEY_COLUMNS } from "./table.ts";

/** What a setting must be, and how to make it so. A compatible database that has no such setting is not refused for it. */
const SETTINGS: Readonly<Record<string, { good: readonly string[]; advice: string }>> = {
  fsync: { good: ["on"], advice: "a crash of the machine would lose acknowledged claims; set fsync = on" },
  full_page_writes: {
    good: ["on"],
    advice: "a crash could tear pages of the table; set full_page_writes = on",
  },
  synchronous_commit: {
    good: ["on", "remote_apply"],
    advice:
      "claims would be acknowledged before they last; run ALTER ROLE … SET synchronous_commit = on, " +
      "or put options=-c%20synchronous_commit%3Don into the connection's URL",
  },
};

/**
 * @throws LedgerUnsupportedError for settings under which an acknowledged claim can be lost
 * @throws AttemptFailure for a replica or a read-only session: a claim looked up there could be missing
 */
export async function checkServer(url: string, ask: Ask): Promise<void> {
  const names = [...Object.keys(SETTINGS), "transaction_read_only"].map((name) => `'${name}'`);
  const { rows } = await ask({
    text: `SELECT name, setting FROM pg_catalog.pg_settings WHERE name IN (${names.join(", ")})`,
  });
  for (const { name, setting } of rows) {
    const wanted = SETTINGS[name ?? ""];
    if (wanted !== undefined && !wanted.good.includes(setting ?? ""))
      throw new LedgerUnsupportedError(url, `${name} is ${setting} there: ${wanted.advice}`);
    if (name === "transaction_read_only" && setting === "on")
      throw new AttemptFailure(
        "the server is a replica, or the session read-only; connect to the primary, where every claim can be seen",
        { passing: true },
      );
  }
}

/**
 * Whether the table is one that can hold records: made by hand, it may lack what makes claims exclusive or lasting.
 * @throws LedgerUnsupportedError
 */
export async function checkTableShape(url: string, table: string, ask: Ask): Promise<void> {
  const [name = "", schema] = table.split(".").reverse();
  const place = schema === undefined ? "CURRENT_SCHEMA" : "$2";
  const values = schema === undefined ? [name] : [name, schema];
  const { rows: keys } = await ask({
    text:
      "SELECT k.column_name, c.is_deferrable FROM information_schema.table_constraints c " +
      "JOIN information_schema.key_column_usage k ON k.constraint_schema = c.constraint_schema " +
      "AND k.constraint_name = c.constraint_name AND k.table_name = c.table_name AND k.table_schema = c.table_schema " +
      `WHERE c.constraint_type = 'PRIMARY KEY' AND c.table_name = $1 AND c.table_schema = ${place} ` +
      "ORDER BY k.ordinal_position",
    values,
  });
  const columns = keys.map((row) => row["column_name"]);
  if (columns.join() !== KEY_COLUMNS.join())
    throw new LedgerUnsupportedError(
      url,
      columns.length === 0
        ? `no primary key of a table ${table} can be seen (in the current schema, unless one is named; it takes the right to INSERT)`
        : `the primary key of ${table} is (${columns.join(", ")}), not (${KEY_COLUMNS.join(", ")})`,
    );
  if (keys.some((row) => row["is_deferrable"] === "YES"))
    throw new LedgerUnsupportedError(
      url,
      `the primary key of ${table} is DEFERRABLE: two claims of one id would both be written before one is refused`,
    );
  const { rows } = await ask({
    text:
      "SELECT c.relpersistence, c.relrowsecurity FROM pg_catalog.pg_class c " +
      "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace " +
      `WHERE c.relname = $1 AND n.nspname = ${place}`,
    values,
  });
  if (rows.some((row) => row["relpersistence"] === "u" || row["relpersistence"] === "t"))
    throw new LedgerUnsupportedError(url, `${table} is UNLOGGED or TEMPORARY: a crash would empty it`);
  if (rows.some((row) => row["relrowsecurity"] === "t"))
    throw new LedgerUnsupportedError(url, `${table} has row level security, which could hide records`);
}
