/** Base of every error of this package; match on `code`, since two copies of a package break `instanceof`. */
export abstract class SpliceError extends Error {
  abstract readonly code: string;
}

/**
 * Bytes that cannot be framed with certainty, so that two parsers might disagree about where a message ends. The
 * connection they came on must be closed; a client gets 400.
 */
export class FramingError extends SpliceError {
  override readonly name = "FramingError";
  readonly code = "CELLKIT_SPLICE_FRAMING";
  /** Which rule was broken, in a few words that are safe to send to the peer (no bytes of the input). */
  readonly rule: string;

  constructor(rule: string, options?: ErrorOptions) {
    super(`the message cannot be framed with certainty: ${rule}; close the connection`, options);
    this.rule = rule;
  }
}

/** The public listener could not be opened. Free the port or choose another address. */
export class ListenError extends SpliceError {
  override readonly name = "ListenError";
  readonly code = "CELLKIT_SPLICE_LISTEN";
  readonly host: string;
  readonly port: number;

  constructor(host: string, port: number, options?: ErrorOptions) {
    const cause = options?.cause;
    const why = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown error";
    const advice =
      why === "EADDRINUSE"
        ? "another process holds it: stop that process or choose another port"
        : why === "EACCES"
          ? "the port is privileged: choose one above 1023 or grant CAP_NET_BIND_SERVICE"
          : "choose an address of this machine";
    super(`cannot listen on ${host}:${port} (${why}): ${advice}`, options);
    this.host = host;
    this.port = port;
  }
}

/** An option or argument is outside its range. Correct the value named in the message. */
export class OptionError extends SpliceError {
  override readonly name = "OptionError";
  readonly code = "CELLKIT_SPLICE_OPTION";
  readonly option: string;

  constructor(option: string, problem: string, options?: ErrorOptions) {
    super(`${option} ${problem}`, options);
    this.option = option;
  }
}
