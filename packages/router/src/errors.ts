/**
 * Everything that this package throws. Match on `code`: two copies of a package break `instanceof`.
 * Messages name files, roles and origins, never tokens, ids or bodies.
 */

/** The base of all errors of `@cellkit/router`. */
export abstract class RouterError extends Error {
  /** Stable, for programs. */
  abstract readonly code: string;
}

/** An option cannot be used. */
export class RouterOptionError extends RouterError {
  override readonly name = "RouterOptionError";
  readonly code = "CELLKIT_ROUTER_OPTION";
}

/** The tokens cannot be used: a file cannot be read, holds no token, or two roles have the same one. */
export class CredentialError extends RouterError {
  override readonly name = "CredentialError";
  readonly code = "CELLKIT_ROUTER_CREDENTIALS";
  /** Whose token it is; undefined where two are equal, and where several cannot be used. */
  readonly role: TokenRole | undefined;
  /** The message without its advice. */
  readonly problem: string;

  constructor(role: TokenRole | undefined, problem: string, options?: ErrorOptions) {
    super(
      `${problem}: every role needs a file of its own with a token of its own, 24 to 4,096 bytes of visible ASCII`,
      options,
    );
    this.role = role;
    this.problem = problem;
  }
}

/** Whose token it is. */
export type TokenRole = "client" | "backend" | "capability";

/** A dispatcher gave no usable answer. */
export class BackendError extends RouterError {
  override readonly name = "BackendError";
  readonly code = "CELLKIT_ROUTER_BACKEND";
  /** The dispatcher's origin. */
  readonly backend: string;
  /** Whether it may have seen the call: `no` until a connection stood. */
  readonly sent: "no" | "maybe";

  constructor(backend: string, problem: string, sent: "no" | "maybe", options?: ErrorOptions) {
    super(`${backend} ${problem}`, options);
    this.backend = backend;
    this.sent = sent;
  }
}

/** No dispatcher would take new work. */
export class NoBackendError extends RouterError {
  override readonly name = "NoBackendError";
  readonly code = "CELLKIT_ROUTER_NO_BACKEND";

  /** @param backendCount how many there were */
  constructor(backendCount: number, options?: ErrorOptions) {
    super(
      backendCount === 0
        ? "no dispatcher is known: look at the list of backends and at the name they are discovered by"
        : `none of ${backendCount} dispatchers is healthy: look at their capacity, and whether they take the backend token`,
      options,
    );
  }
}

/** A placement rule of the program's own failed, or answered what it may not. Nothing was recorded for the id, and nothing sent. */
export class PlacementError extends RouterError {
  override readonly name = "PlacementError";
  readonly code = "CELLKIT_ROUTER_PLACEMENT";

  /** @param problem what it did; what it threw is the `cause` */
  constructor(problem: string, options?: ErrorOptions) {
    super(
      `the placement rule ${problem}: mend it; nothing was recorded for the id, and nothing sent`,
      options,
    );
  }
}

/** Which dispatchers there are could not be found out, so that what nobody has cannot be told either. */
export class BackendListError extends RouterError {
  override readonly name = "BackendListError";
  readonly code = "CELLKIT_ROUTER_BACKEND_LIST";

  /** @param problem what is wrong with the list */
  constructor(problem: string, options?: ErrorOptions) {
    super(
      `${problem}: which dispatchers there are is not known; mend the name's lookup, or list them`,
      options,
    );
  }
}

/** Certificate and key of the listener cannot be used. At a start the daemon ends; later on the pair in use stays. */
export class CertificateError extends RouterError {
  override readonly name = "CertificateError";
  readonly code = "CELLKIT_ROUTER_CERTIFICATE";
  /** The file that is wrong; of a pair that does not match, the certificate's. */
  readonly path: string;

  constructor(path: string, problem: string, options?: ErrorOptions) {
    super(`the listener's TLS cannot be used: ${path} ${problem}`, options);
    this.path = path;
  }
}

/** There is no ledger where one must be. `cause` is the ledger's own error, whose advice is for programs; this one's is for flags. */
export class LedgerAbsentError extends RouterError {
  override readonly name = "LedgerAbsentError";
  readonly code = "CELLKIT_ROUTER_LEDGER_ABSENT";

  /** @param problem what was found, and where; with `hasRecords` there are records, to which a mark is missing */
  constructor(problem: string, options: ErrorOptions & { hasRecords?: boolean } = {}) {
    const { hasRecords = false, ...rest } = options;
    super(
      hasRecords
        ? `${problem}; one router that is started without --require-existing-ledger does, too`
        : `${problem}. To create a new one, start one router without --require-existing-ledger`,
      rest,
    );
  }
}

/** The address of the ledger is one of no store, or of one that cannot be opened like this. Nothing was opened. */
export class LedgerPlaceError extends RouterError {
  override readonly name = "LedgerPlaceError";
  readonly code = "CELLKIT_ROUTER_LEDGER_PLACE";
  /** A configuration that does not fit: a restart cannot help. */
  readonly exitCode = 2;
}
