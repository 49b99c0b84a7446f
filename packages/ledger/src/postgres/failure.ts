/** What a failed statement says about what happened, by its SQLSTATE (severities are translated by servers and say nothing reliable). */

/**
 * After these the statement certainly changed nothing: the server refused it before any commit. Whole classes (two characters) and
 * single states. Everything else, a full disk and an internal error included, may have come with a commit.
 */
const REFUSALS = [
  "0A",
  "22",
  "23",
  "28",
  "3D",
  "3F",
  "42",
  "55",
  "25006",
  "40001",
  "40P01",
  "53300",
  "57014",
];

/** These pass by themselves: a server that restarts or has no free connection, a replica that is promoted, a deadlock that was broken. */
const PASSING_STATES = ["08", "57P", "25006", "40001", "40003", "40P01", "53300", "55P03"];

/** The same for what the network says. */
const PASSING_CODES = new Set([
  "EAI_AGAIN",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOENT",
  "ENOTFOUND",
  "EPIPE",
  "ETIMEDOUT",
]);

/** A try that failed by our own judgement, not by an error of pg. Never leaves this folder. */
export class AttemptFailure extends Error {
  override readonly name = "AttemptFailure";
  /** Whether another try may well succeed. */
  readonly passing: boolean;

  constructor(problem: string, { passing, ...options }: ErrorOptions & { passing: boolean }) {
    super(problem, options);
    this.passing = passing;
  }
}

/** Two rows with one primary key. */
export const UNIQUE_VIOLATION = "23505";
/** There is no such table. */
export const UNDEFINED_TABLE = "42P01";
/** A column that the grouped ones do not determine: those are no primary key, or one that is checked at the end of a transaction. */
export const GROUPING_ERROR = "42803";
/** There is no such column. */
export const UNDEFINED_COLUMN = "42703";
/** The table is there; two racing creators can see the other two states in its place. */
export const CREATED_MEANWHILE: readonly string[] = ["42P07", "42710", UNIQUE_VIOLATION];

/** The five characters that the server gave the failure; undefined if it is not the server's. */
export function sqlState(error: unknown): string | undefined {
  const code = codeOf(error);
  return code !== undefined && /^[0-9A-Z]{5}$/.test(code) && error instanceof Error && "severity" in error
    ? code
    : undefined;
}

/** Whether the statement certainly changed nothing. */
export function isRefusal(error: unknown): boolean {
  const state = sqlState(error);
  return state !== undefined && REFUSALS.some((prefix) => state.startsWith(prefix));
}

/** Whether the same may well succeed in a moment. */
export function isPassing(error: unknown): boolean {
  if (error instanceof AttemptFailure) return error.passing;
  const state = sqlState(error);
  if (state !== undefined) return PASSING_STATES.some((prefix) => state.startsWith(prefix));
  const code = codeOf(error);
  if (code !== undefined) return PASSING_CODES.has(code);
  // pg has no codes for these: "Connection terminated", "… unexpectedly", "… due to connection timeout", "Client has encountered …".
  return error instanceof Error && /^(Connection terminated|Client (has|was) )/.test(error.message);
}

/** The failure as words for people; neither pg nor the server puts a password there. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return "something that is no error was thrown";
  if (error instanceof AggregateError && error.errors.length > 0) return describeFailure(error.errors[0]);
  const state = sqlState(error);
  const hint = HINTS[state ?? codeOf(error) ?? ""] ?? hintOfMessage(error.message);
  return `${error.message}${state === undefined ? "" : ` (SQLSTATE ${state})`}${hint}`;
}

const CHECK_PLACE = ": see that the address has the server's host and port, and that the server runs";
const CHECK_NETWORK = `${CHECK_PLACE}, and that no firewall is between`;
const CHECK_USER =
  ": see that the address (or PGUSER) names a role of that server, with its password (PGPASSWORD), and that pg_hba.conf lets it in from here";

/** What to do next, by SQLSTATE or by a code of the system's. */
const HINTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: CHECK_PLACE,
  ENOENT: CHECK_PLACE,
  ENOTFOUND: ": see that the host's name is right, and that DNS knows it here",
  EAI_AGAIN: ": DNS gave no answer; see that it can be asked here",
  ETIMEDOUT: CHECK_NETWORK,
  EHOSTUNREACH: CHECK_NETWORK,
  ENETUNREACH: CHECK_NETWORK,
  "28000": CHECK_USER,
  "28P01": CHECK_USER,
  "3D000": ": see that the address names a database of that server, or let an administrator make it",
  "25006": ": this is a replica or a read-only session; connect to the primary",
  "42501":
    ": grant the role SELECT, INSERT, UPDATE and DELETE on the ledger's table; where there is none yet, let an administrator make it (cellkit ledger sql prints the statement)",
  "42P01": ": the ledger's table is gone; restore it, an empty one would run old work again",
  "53300": ": raise max_connections or lower connectionCount",
};

/** What pg says without a code, by its words. */
function hintOfMessage(message: string): string {
  if (/client password must be a string/.test(message)) return CHECK_USER;
  return /does not support SSL/.test(message)
    ? ": switch TLS on at the server, or take sslmode out of the address where the network is your own"
    : "";
}

function codeOf(error: unknown): string | undefined {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
