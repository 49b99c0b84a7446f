/**
 * The one table of all ledgers of a database, and every statement on it: SQL as the standard has it, except that FETCH FIRST
 * and EXTRACT take parameters and EPOCH as PostgreSQL and its relatives know them. A lost race is a violated primary key, not an
 * ON CONFLICT clause; a table made by somebody else meanwhile is an error that is read, not IF NOT EXISTS (which fails in a race).
 * That the key is there, each claim proves by a GROUP BY that is never run; see `insert`.
 */

import { parseRecord } from "../core/record.ts";
import { LedgerOptionError } from "../errors.ts";
import type { LedgerEntry, Owner } from "../ledger.ts";
import type { Answer, Statement } from "./connections.ts";
import { AttemptFailure } from "./failure.ts";

/** The layout below; another number in a ledger's marker is a layout that this code must not touch. */
export const TABLE_FORMAT = 1;

/** The table unless another is asked for. */
export const DEFAULT_TABLE = "cellkit_ledger";

/**
 * The key of the row that says that a ledger was created; its nonce is the ledger's id. No record's key is like it. Where a
 * table was emptied, or made anew, the row goes with the records, which tells it from a ledger in which an id is free.
 */
const MARKER_KEY = "ledger";

/** How many rows are read or removed at once. */
export const PAGE_ROWS = 500;

/** A row as it lies in the table. */
export interface Row {
  entry: LedgerEntry;
  /** Tells the claim that wrote it from every other. */
  nonce: string;
  /** The server's time when the row was read, Unix milliseconds. */
  serverMs: number;
}

/** The columns by name, each with its type. Names are those of no SQL keyword. */
const COLUMNS = {
  ledger: "VARCHAR(64)",
  record_key: "VARCHAR(64)",
  version: "INTEGER",
  backend: "VARCHAR(4096)",
  body_hash: "VARCHAR(4096)",
  claim_nonce: "VARCHAR(36)",
  marked: "BOOLEAN",
  modified_at: "TIMESTAMP WITH TIME ZONE",
};

/** The primary key, in its order. */
export const KEY_COLUMNS = ["ledger", "record_key"] as const;

const INSERTED = Object.keys(COLUMNS).join(", ");

const SELECTED =
  "record_key, version, backend, body_hash, claim_nonce, marked, " +
  "EXTRACT(EPOCH FROM modified_at) AS modified_s, EXTRACT(EPOCH FROM CURRENT_TIMESTAMP) AS server_s";

/**
 * The statement that makes the table, for administrators whose router may not create tables.
 * @param table a name, or a schema and a name with a dot between; default `cellkit_ledger`
 * @throws LedgerOptionError (CELLKIT_LEDGER_OPTION) for a name outside of `[a-z_][a-z0-9_]{0,62}`
 */
export function ledgerTableSql(table: string = DEFAULT_TABLE): string {
  checkTable(table);
  const columns = Object.entries(COLUMNS).map(([name, type]) => `  ${name} ${type} NOT NULL,\n`);
  return `CREATE TABLE ${table} (\n${columns.join("")}  PRIMARY KEY (${KEY_COLUMNS.join(", ")})\n);`;
}

/** @throws LedgerOptionError for a name that would have to be quoted */
export function checkTable(table: string): void {
  if (!/^([a-z_][a-z0-9_]{0,62}\.)?[a-z_][a-z0-9_]{0,62}$/.test(table))
    throw new LedgerOptionError(
      `a table is named like cellkit_ledger or schema.cellkit_ledger, in a-z 0-9 _, not ${JSON.stringify(table)}`,
    );
}

/** The statements that find or make a ledger. */
export function markerStatements(table: string, ledger: string) {
  return {
    create: (): Statement => ({ text: ledgerTableSql(table), commits: true }),
    /** The marker's format and id; it fails where the table lacks a column. */
    marker: (): Statement => ({
      text: `SELECT ${SELECTED} FROM ${table} WHERE ledger = $1 AND record_key = '${MARKER_KEY}'`,
      values: [ledger],
    }),
    insertMarker: (ledgerId: string): Statement => ({
      text:
        `INSERT INTO ${table} (${INSERTED}) ` +
        `VALUES ($1, '${MARKER_KEY}', ${TABLE_FORMAT}, '', '', $2, FALSE, CURRENT_TIMESTAMP)`,
      values: [ledger, ledgerId],
      commits: true,
    }),
  };
}

/** What {@link markerStatements} answers. */
export type MarkerStatements = ReturnType<typeof markerStatements>;

/** The statements of one ledger that is open. Whatever may find or make nothing looks at its marker, too: see {@link MARKER_KEY}. */
export function ledgerStatements(table: string, ledger: string, ledgerId: string) {
  const records = `FROM ${table} WHERE ledger = $1 AND record_key <> '${MARKER_KEY}'`;
  return {
    ledgerId,
    marker: markerStatements(table, ledger).marker,
    /** Holds the marker's row until the transaction ends, so that those who count do it one after the other. */
    lockMarker: (): Statement => ({
      text: `UPDATE ${table} SET marked = marked WHERE ledger = $1 AND record_key = '${MARKER_KEY}' AND claim_nonce = $2`,
      values: [ledger, ledgerId],
    }),
    /** The rows of these keys, and the marker's. */
    find: (keys: readonly string[]): Statement => ({
      text:
        `SELECT ${SELECTED} FROM ${table} ` +
        `WHERE ledger = $1 AND record_key IN ('${MARKER_KEY}', ${parameters(2, keys.length)})`,
      values: [ledger, ...keys],
    }),
    /**
     * One claim, one round trip: it stands or fails by the primary key, and writes nothing where this ledger's marker is not. The last
     * condition is always true and its subquery never run, but read: a column that is not grouped by may be selected only where the grouped
     * ones are a primary key that is checked for each row (SQL:1999, feature T301), so that the server refuses the statement on a table that
     * has lost its key, see GROUPING_ERROR in failure.ts. To group the marker's row itself says the same and costs more.
     */
    insert: (key: string, owner: Owner, nonce: string): Statement => ({
      text:
        `INSERT INTO ${table} (${INSERTED}) ` +
        `SELECT ledger, ${text(2)}, 1, ${text(3)}, ${text(4)}, ${text(5)}, FALSE, CURRENT_TIMESTAMP ` +
        `FROM ${table} WHERE ledger = $1 AND record_key = '${MARKER_KEY}' AND claim_nonce = $6 ` +
        `AND (1 = 1 OR EXISTS (SELECT claim_nonce FROM ${table} GROUP BY ${KEY_COLUMNS.join(", ")}))`,
      values: [ledger, key, owner.backend, owner.bodyHash, nonce, ledgerId],
      commits: true,
    }),
    /**
     * Changes nothing, but is a commit of its own behind the one of that nonce: once it lasts, on disk and on every standby that is
     * waited for, so does the other. Finds no row unless that claim recorded it.
     */
    confirm: (key: string, nonce: string): Statement => ({
      text: `UPDATE ${table} SET claim_nonce = claim_nonce WHERE ledger = $1 AND record_key = $2 AND claim_nonce = $3`,
      values: [ledger, key, nonce],
      commits: true,
    }),
    mark: (key: string, nonce: string): Statement => ({
      text: `UPDATE ${table} SET marked = TRUE WHERE ledger = $1 AND record_key = $2 AND claim_nonce = $3`,
      values: [ledger, key, nonce],
      commits: true,
    }),
    /** Removes these claims' records and no others', even if an id was freed and claimed anew meanwhile. */
    remove: (rows: readonly Row[]): Statement => ({
      text:
        `DELETE FROM ${table} WHERE ledger = $1 AND record_key IN (${parameters(2, rows.length)}) ` +
        `AND claim_nonce IN (${parameters(2 + rows.length, rows.length)})`,
      values: [ledger, ...rows.map((row) => row.entry.key), ...rows.map((row) => row.nonce)],
      commits: true,
    }),
    count: (): Statement => ({ text: `SELECT COUNT(*) AS total ${records}`, values: [ledger] }),
    /** Counts no further than a limit. */
    countUpTo: (limit: number): Statement => ({
      text: `SELECT COUNT(*) AS total FROM (SELECT record_key ${records} FETCH FIRST ${limit} ROWS ONLY) AS counted`,
      values: [ledger],
    }),
    /** The rows behind a key, in the order of keys, a page of them. */
    page: (after: string): Statement => ({
      text: `SELECT ${SELECTED} ${records} AND record_key > $2 ORDER BY record_key FETCH FIRST ${PAGE_ROWS} ROWS ONLY`,
      values: [ledger, after],
    }),
    pageOfMarked: (after: string): Statement => ({
      text:
        `SELECT ${SELECTED} ${records} AND record_key > $2 AND marked = TRUE ` +
        `ORDER BY record_key FETCH FIRST ${PAGE_ROWS} ROWS ONLY`,
      values: [ledger, after],
    }),
  };
}

/** What {@link ledgerStatements} answers. */
export type LedgerStatements = ReturnType<typeof ledgerStatements>;

/** What stands in the rows of an answer. Rows were written by anybody with access: each is read like a record from a file. */
export function readRows({ rows }: Answer): Row[] {
  return rows.map((row) => {
    const key = row["record_key"] ?? "";
    const seconds = (column: string) => Math.floor(Number(row[column]) * 1_000);
    return {
      nonce: row["claim_nonce"] ?? "",
      serverMs: seconds("server_s"),
      entry: {
        key,
        ...readOwner(key, row),
        modifiedMs: seconds("modified_s"),
        marked: row["marked"] === "t",
      },
    };
  });
}

/** The number in a counting answer. */
export function readTotal({ rows: [row] }: Answer): number {
  return Number(row?.["total"]);
}

/** The marker's format and the ledger's id; undefined if there is no marker. */
export function readMarker({ rows }: Answer): { format: number; ledgerId: string } | undefined {
  const row = rows.find((one) => one["record_key"] === MARKER_KEY);
  return row && { format: Number(row["version"]), ledgerId: row["claim_nonce"] ?? "" };
}

/** Checks an answer in which the marker must be. @throws AttemptFailure where another ledger lies, or none any more */
export function checkMarker(answer: Answer, ledgerId: string): void {
  const found = readMarker(answer)?.ledgerId;
  if (found !== ledgerId)
    throw new AttemptFailure(
      `another ledger lies there than was opened (${found ?? "none"} for ${ledgerId}): its table was emptied, replaced, or is ` +
        "another server's. Restore it; an empty one would run old work again",
      { passing: false },
    );
}

function readOwner(
  key: string,
  row: Readonly<Record<string, string | null>>,
): Pick<LedgerEntry, "owner" | "problem"> {
  if (!/^[0-9a-f]{64}$/.test(key)) return { owner: undefined, problem: "its key is no BLAKE3-256 of an id" };
  const { version, backend, body_hash } = row;
  const parsed = parseRecord(Buffer.from(JSON.stringify({ version: Number(version), backend, body_hash })));
  return "owner" in parsed ? parsed : { owner: undefined, problem: parsed.problem };
}

/** A parameter in a SELECT, where nothing else says of what type it is. */
function text(number: number): string {
  return `CAST($${number} AS VARCHAR)`;
}

function parameters(first: number, count: number): string {
  return Array.from({ length: count }, (_, index) => `$${first + index}`).join(", ");
}
