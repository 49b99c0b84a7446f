/**
 * Everything that this package throws. Match on `code`: two copies of a package break `instanceof`.
 * Messages name ledgers and keys (hashes), never ids, bodies or passwords.
 */

/** The base of all errors of `@cellkit/ledger`. */
export abstract class LedgerError extends Error {
  /** Stable, for programs. */
  abstract readonly code: string;
}

/** An option or an argument cannot be used. A mistake in the program, not in its input. */
export class LedgerOptionError extends LedgerError {
  override readonly name = "LedgerOptionError";
  readonly code = "CELLKIT_LEDGER_OPTION";
}

/** The ledger was closed before the call, or while it waited for its turn. Nothing was written. */
export class LedgerClosedError extends LedgerError {
  override readonly name = "LedgerClosedError";
  readonly code = "CELLKIT_LEDGER_CLOSED";

  constructor(ledger: string, options?: ErrorOptions) {
    super(`the ledger ${ledger} is closed: open it again`, options);
  }
}

/** The place cannot keep what a ledger promises (no flock, no fsync of directories, memory instead of a disk). */
export class LedgerUnsupportedError extends LedgerError {
  override readonly name = "LedgerUnsupportedError";
  readonly code = "CELLKIT_LEDGER_UNSUPPORTED";

  constructor(ledger: string, lacks: string, options?: ErrorOptions) {
    super(`${ledger} cannot hold a ledger: ${lacks}`, options);
  }
}

/** The ledger must be there already (`requireExisting`), and is not. Nothing was created. */
export class LedgerMissingError extends LedgerError {
  override readonly name = "LedgerMissingError";
  readonly code = "CELLKIT_LEDGER_MISSING";
  /** The message without its last sentence, which is for programs: a command has another way to create a ledger. */
  readonly problem: string;
  /** There are records all the same: a ledger of the original router's, or one that lost its mark. It is to be marked, not created. */
  readonly hasRecords: boolean;

  /**
   * @param ledger a path, or the address of a bucket or a database without its password
   * @param found what was found in its place; with `hasRecords` what the mark would be
   */
  constructor(ledger: string, found: string, options: ErrorOptions & { hasRecords?: boolean } = {}) {
    const { hasRecords = false, ...rest } = options;
    const problem = hasRecords
      ? `there are records at ${ledger}, but no mark of a ledger's creation (${found}), as where only routers of the original have been: cellkit ledger adopt leaves one`
      : `no ledger was ever created at ${ledger}: ${found}. If it should be there, look for ${suspectOf(ledger)}; an empty ledger in its place would run old work again`;
    super(
      `${problem}. To ${hasRecords ? "mark it" : "create a new one"}, open it once without requireExisting`,
      rest,
    );
    this.problem = problem;
    this.hasRecords = hasRecords;
  }
}

/** No usable owner was chosen for a new id. Nothing was written; the same claim may be made again. */
export class OwnerChoiceError extends LedgerError {
  override readonly name = "OwnerChoiceError";
  readonly code = "CELLKIT_LEDGER_OWNER";
}

/** Others held the ledger's lock until the time was up. Nothing was written; the same claim may be made again. */
export class LedgerBusyError extends LedgerError {
  override readonly name = "LedgerBusyError";
  readonly code = "CELLKIT_LEDGER_BUSY";

  constructor(ledger: string, waitedMs: number, options?: ErrorOptions) {
    super(
      `the lock of the ledger ${ledger} was not free for ${Math.round(waitedMs)} ms: nothing was written, the same call may be made again`,
      options,
    );
  }
}

/** The id's record is there and cannot be read as one. It counts as taken, and nothing of ours changes it. */
export class CorruptRecordError extends LedgerError {
  override readonly name = "CorruptRecordError";
  readonly code = "CELLKIT_LEDGER_CORRUPT";
  /** The lowercase hex BLAKE3-256 of the id. */
  readonly key: string;

  constructor(ledger: string, key: string, problem: string, options?: ErrorOptions) {
    super(
      `the record ${key} of the ledger ${ledger} cannot be used: ${problem}. Restore it from a backup; removing it would let its work run twice`,
      options,
    );
    this.key = key;
  }
}

/** What is wrong, most likely, where a ledger should be and is not. */
function suspectOf(ledger: string): string {
  const scheme = /^([a-z][a-z0-9+.-]*):/.exec(ledger)?.[1];
  if (scheme === "postgresql" || scheme === "postgres") return "a wrong host, database, schema or name";
  if (scheme === "s3" || scheme === "gs" || scheme === "az")
    return "a wrong bucket, prefix, endpoint or name";
  return "a missing mount or a wrong path";
}

/** The store cannot be asked or did not do what it was told: a full disk, a lost connection, a refusal. */
export class LedgerUnavailableError extends LedgerError {
  override readonly name = "LedgerUnavailableError";
  readonly code = "CELLKIT_LEDGER_UNAVAILABLE";
  /**
   * Whether the claim may have been recorded: `no` if it certainly was not, else `maybe`. Either way no side effect may
   * begin, and claiming again with the same id and body settles it.
   */
  readonly recorded: "no" | "maybe";

  constructor(ledger: string, problem: string, recorded: "no" | "maybe", options?: ErrorOptions) {
    super(
      `the ledger ${ledger} is unavailable: ${problem}. ${
        recorded === "no"
          ? "Nothing was written"
          : "What was to be written may be there now; the same call, made again, settles it"
      }`,
      options,
    );
    this.recorded = recorded;
  }
}

/** The ledger was not opened with `retirable: true`, so none of its ids may ever be used again. */
export class NotRetirableError extends LedgerError {
  override readonly name = "NotRetirableError";
  readonly code = "CELLKIT_LEDGER_NOT_RETIRABLE";

  constructor(ledger: string, options?: ErrorOptions) {
    super(
      `the ledger ${ledger} keeps its records for ever: only one opened with retirable: true retires, and only ids that can never authorize anything again`,
      options,
    );
  }
}

/** A file is no export of a ledger, or not a whole one. Nothing of it was written, unless it changed while it was read. */
export class LedgerExportError extends LedgerError {
  override readonly name = "LedgerExportError";
  readonly code = "CELLKIT_LEDGER_EXPORT";
  /** What is wrong with it, without the sentences around it. */
  readonly problem: string;

  /** @param message in place of the usual one */
  constructor(problem: string, options: ErrorOptions & { message?: string } = {}) {
    const { message, ...rest } = options;
    super(
      message ?? `this is no whole export of a ledger: ${problem}. Nothing of it was written; export again`,
      rest,
    );
    this.problem = problem;
  }

  /** Of a file that was whole when it was read for the first time. */
  static changed(problem: string, writtenCount: number, options: ErrorOptions): LedgerExportError {
    const message = `the file changed while it was imported: ${problem}. ${
      writtenCount === 0
        ? "Nothing of it was written"
        : `${writtenCount} of its bindings were written before that`
    }; see that nobody changes it, and import it again`;
    return new LedgerExportError(problem, { ...options, message });
  }
}

/** A process that takes part in a qualification did not start, cannot be reached, or does not answer as one. */
export class LedgerAgentError extends LedgerError {
  override readonly name = "LedgerAgentError";
  readonly code = "CELLKIT_LEDGER_AGENT";

  /** @param agent `agent 2`, or `HOST:PORT` */
  constructor(agent: string, problem: string, options?: ErrorOptions) {
    super(`${agent}: ${problem}`, options);
  }
}

/** A ledger does not keep a rule of `@cellkit/ledger/conformance`: a bug of the store, or of the way it is opened. */
export class ConformanceError extends LedgerError {
  override readonly name = "ConformanceError";
  readonly code = "CELLKIT_LEDGER_CONFORMANCE";
}
