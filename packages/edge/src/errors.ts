/** The base class of what this package throws itself. Match on `code`. */
export abstract class EdgeError extends Error {
  abstract override readonly name: string;
  abstract readonly code: `CELLKIT_EDGE_${string}`;
}

/**
 * Certificate, key or client CA cannot be used: absent, unreadable, not PEM, or not of each other. At a start the daemon ends
 * with 1; on a change while it runs, for which the dates count as well, the pair in use stays. The message names the file, never its
 * content; `cause` is the `CertificateFileError` of `@cellkit/daemon`.
 */
export class CertificateError extends EdgeError {
  override readonly name = "CertificateError";
  readonly code = "CELLKIT_EDGE_CERTIFICATE";
  /** The file that is wrong; of a pair that does not match, the certificate's. */
  readonly path: string;

  constructor(path: string, problem: string, options?: ErrorOptions) {
    super(`operator TLS certificate/key unavailable: ${path} ${problem}`, options);
    this.path = path;
  }
}

/** `--check` found something that keeps the edge from serving. The process ends with 1; nothing listened. */
export class CheckFailedError extends EdgeError {
  override readonly name = "CheckFailedError";
  readonly code = "CELLKIT_EDGE_CHECK_FAILED";
  readonly problems: readonly string[];

  constructor(problems: readonly string[], options?: ErrorOptions) {
    super(`the check failed: ${problems.join("; ")}`, options);
    this.problems = problems;
  }
}
