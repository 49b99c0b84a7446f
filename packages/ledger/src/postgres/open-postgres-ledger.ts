/** Opens a ledger in PostgreSQL: checks the server, makes the table and the ledger's marker if they may be made. */
import { randomUUID } from "node:crypto";
import pg from "pg";
import { checkConnectionUrl } from "../core/connection-url.ts";
import { resolveLedgerOptions } from "../core/ledger-options.ts";
import { loadDigest } from "../digest.ts";
import { LedgerMissingError, LedgerOptionError, LedgerUnsupportedError } from "../errors.ts";
import type { LedgerOptions, StoredLedger } from "../ledger.ts";
import { type Ask, Connections } from "./connections.ts";
import { CREATED_MEANWHILE, sqlState, UNDEFINED_COLUMN, UNDEFINED_TABLE } from "./failure.ts";
import { LOOKS_IN_FLIGHT } from "./looks.ts";
import { PostgresLedger } from "./postgres-ledger.ts";
import { checkServer, checkTableShape } from "./server-check.ts";
import {
  checkMarker,
  checkTable,
  DEFAULT_TABLE,
  ledgerStatements,
  type MarkerStatements,
  markerStatements,
  readMarker,
  TABLE_FORMAT,
} from "./table.ts";

/** The longest time that a call may be given; what is longer is not waiting but hanging. */
const MAX_TIMEOUT_MS = 600_000;

/** What a ledger in PostgreSQL is opened with. */
export interface PostgresLedgerOptions extends LedgerOptions {
  /**
   * `postgresql://user:password@host:port/database?sslmode=verify-full&sslrootcert=/path`, or what `pg` takes as a configuration. What is
   * missing comes from PGHOST, PGPASSWORD and so on. Without `sslmode` the connection is plain; any but `disable` and `no-verify`
   * checks certificate and name. It must lead to the primary, directly or through a pooler.
   */
  connection: string | pg.PoolConfig;
  /** The table of all ledgers of this database: a name, or `schema.name`. Default `cellkit_ledger`. */
  table?: string | undefined;
  /** The most connections that this ledger holds, up to two of them for looks alone; 1 to 1,000. Default 16. */
  connectionCount?: number | undefined;
  /**
   * How long one step of a call (a look, a write) may take in all: waiting for a connection, the server, and tries after failures that
   * pass, such as a restart of the server. A look that waits for others to come back may take twice as long. 1 to 600,000 ms. Default 5,000.
   */
  timeoutMs?: number | undefined;
}

/**
 * Opens a ledger in PostgreSQL 12 or later, or in a database that speaks like it. A claim of a new id takes two round trips, a look and one
 * INSERT that the primary key decides; every other call that finds its id takes one. Records get their times from the server, and
 * a quarantine is measured by the server's clock unless `now` is given. There is no limit of records; a `capacity` is exact among all who
 * open the ledger with the same one, and costs a lock and a count for each new record.
 *
 * An acknowledged claim survives crashes with `fsync`, `full_page_writes` and `synchronous_commit` on, which is checked; it survives a failover
 * only if `synchronous_standby_names` names the standbys that may take over.
 * @throws LedgerOptionError (CELLKIT_LEDGER_OPTION)
 * @throws LedgerMissingError (CELLKIT_LEDGER_MISSING) with `requireExisting`, where no such ledger was created
 * @throws LedgerUnsupportedError (CELLKIT_LEDGER_UNSUPPORTED) for a server that may lose commits, and for a table of another shape or format
 * @throws LedgerUnavailableError (CELLKIT_LEDGER_UNAVAILABLE) if the server cannot be asked or refuses
 */
export async function openPostgresLedger(options: PostgresLedgerOptions): Promise<StoredLedger> {
  const { table = DEFAULT_TABLE, connectionCount = 16, timeoutMs = 5_000 } = options;
  const resolved = resolveLedgerOptions(options, { capacity: undefined, now: Date.now });
  checkTable(table);
  if (options.connection === null || !["string", "object"].includes(typeof options.connection))
    throw new LedgerOptionError("connection is a URL or a configuration of pg");
  checkRange("connectionCount", connectionCount, 1_000);
  checkRange("timeoutMs", timeoutMs, MAX_TIMEOUT_MS);
  const config =
    typeof options.connection === "string" ? { connectionString: options.connection } : options.connection;
  if (config.connectionString !== undefined) checkConnectionUrl(config.connectionString);
  const url = describePlace(config, resolved.name);
  const digest = await loadDigest();
  const connect = (count: number) =>
    new Connections(config, {
      url,
      timeoutMs,
      connectionCount: count,
      check: (ask) => checkServer(url, ask),
    });
  // Looks have connections of their own, so that they do not wait behind writes.
  const lookCount = Math.min(LOOKS_IN_FLIGHT, Math.floor(connectionCount / 2));
  const connections = connect(connectionCount - lookCount);
  const lookConnections = lookCount === 0 ? connections : connect(lookCount);
  try {
    const place = {
      url,
      table,
      statements: markerStatements(table, resolved.name),
      requireExisting: resolved.requireExisting,
    };
    const ledgerId = await connections.run((ask) => findOrCreate(place, ask), undefined);
    const statements = ledgerStatements(table, resolved.name, ledgerId);
    // A connection made later must still lead to the ledger that was opened, not to an empty database in its place.
    for (const pool of new Set([connections, lookConnections]))
      pool.alsoCheck(async (ask) => checkMarker(await ask(statements.marker()), ledgerId));
    const { name, capacity, retirable } = resolved;
    const parts = {
      url,
      name,
      ledgerId,
      capacity,
      retirable,
      connections,
      lookConnections,
      statements,
      digest,
    };
    return new PostgresLedger({ ...parts, now: options.now });
  } catch (error) {
    await Promise.all([connections.close(), lookConnections.close()]);
    throw error;
  }
}

function checkRange(option: string, value: number, max: number): void {
  if (!(Number.isSafeInteger(value) && value >= 1 && value <= max))
    throw new LedgerOptionError(`${option} must be an integer from 1 to ${max}, not ${value}`);
}

/** The user, server, database and ledger, without the password. @throws LedgerOptionError for a connection that pg cannot read */
function describePlace(config: pg.PoolConfig, name: string): string {
  let client: pg.Client;
  try {
    client = new pg.Client(config);
  } catch (error) {
    // No cause: it may hold the URL, and the URL a password.
    const code = error instanceof Error && "code" in error ? `: ${error.code}` : "";
    throw new LedgerOptionError(
      `the connection cannot be used${code}; write postgresql://user@host:port/database?sslmode=verify-full, ` +
        "special characters in user and password percent-encoded, files of sslrootcert and the like readable",
    );
  }
  const host = client.host.includes(":") ? `[${client.host}]` : encodeURI(client.host);
  const user = client.user ? `${encodeURIComponent(client.user)}@` : "";
  return `postgresql://${user}${host}:${client.port}/${encodeURI(client.database ?? "")}#${name}`;
}

interface Place {
  url: string;
  table: string;
  statements: MarkerStatements;
  requireExisting: boolean;
}

/** The id of the ledger that is there, or of one that is made. Whatever others make meanwhile is found in the end. */
async function findOrCreate(place: Place, ask: Ask): Promise<string> {
  const { url, table, statements, requireExisting } = place;
  const marker = await readMarkerOf(place, ask);
  if (marker === "no table") {
    if (requireExisting) throw new LedgerMissingError(url, `there is no table ${table}`);
    await unless(CREATED_MEANWHILE, () => ask(statements.create()));
    return findOrCreate(place, ask);
  }
  if (marker === undefined) {
    if (requireExisting) throw new LedgerMissingError(url, `the table ${table} has no ledger of that name`);
    await checkTableShape(url, table, ask);
    await unless(CREATED_MEANWHILE, () => ask(statements.insertMarker(randomUUID())));
    return findOrCreate(place, ask);
  }
  if (marker.format !== TABLE_FORMAT)
    throw new LedgerUnsupportedError(
      url,
      `its layout is of version ${marker.format}, and this is version ${TABLE_FORMAT}; use the cellkit that made it`,
    );
  await checkTableShape(url, table, ask);
  return marker.ledgerId;
}

async function readMarkerOf({ url, table, statements }: Place, ask: Ask) {
  try {
    return readMarker(await ask(statements.marker()));
  } catch (error) {
    const state = sqlState(error);
    if (state === UNDEFINED_TABLE) return "no table";
    if (state !== UNDEFINED_COLUMN) throw error;
    const { message } = error as Error;
    throw new LedgerUnsupportedError(url, `${table} is a table of something else: ${message}`, {
      cause: error,
    });
  }
}

/** Does something whose failure with one of these states means that it is done already. */
async function unless(states: readonly string[], act: () => Promise<unknown>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (!states.includes(sqlState(error) ?? "")) throw error;
  }
}
