/** The base class of everything this package throws. Match on `code`: it is stable, and two copies of a package break `instanceof`. */
export abstract class DaemonError extends Error {
  abstract override readonly name: string;
  abstract readonly code: `CELLKIT_DAEMON_${string}`;
}

/** One thing that is wrong with what the user gave. */
export interface ConfigProblem {
  /** What to change, as the user wrote it: `--listen`, `CELLD_ADDR`, or an argument's name. */
  readonly where: string;
  /** What was given there, cut to 80 characters; absent where nothing was given or it is a secret. */
  readonly value?: string;
  /** What is wrong and what is wanted, without a leading capital. Never holds a secret's value. */
  readonly message: string;
}

/** Flags, arguments or environment variables do not fit. All problems are listed at once; nothing was started. */
export class ConfigError extends DaemonError {
  override readonly name = "ConfigError";
  readonly code = "CELLKIT_DAEMON_CONFIG";
  /** The process ends with 2 (see {@link exitCodes}). */
  readonly exitCode = 2;
  readonly problems: readonly ConfigProblem[];
  /** What to show before the message, where nothing was given: the text of `--help`, with a line break at its end. */
  readonly help: string | undefined;

  constructor(
    program: string,
    problems: readonly ConfigProblem[],
    options: ErrorOptions & { help?: string } = {},
  ) {
    const { help, ...rest } = options;
    const lines = problems.map(({ where, value, message }) =>
      // A schema's own message may name the value already.
      value === undefined || message.includes(JSON.stringify(value))
        ? `${where}: ${message}`
        : `${where} ${JSON.stringify(value)}: ${message}`,
    );
    const list = lines.length === 1 ? ` ${lines[0]}` : `\n  ${lines.join("\n  ")}`;
    const count = lines.length === 1 ? "" : ` ${lines.length} problems:`;
    const advice = help === undefined ? `\nRun \`${program} --help\` for all options.` : "";
    super(`${program}:${count}${list}${advice}`, rest);
    this.problems = problems;
    this.help = help;
  }
}

/** A schema cannot be turned into flags. A mistake of the program's author: fix the schema. */
export class SchemaError extends DaemonError {
  override readonly name = "SchemaError";
  readonly code = "CELLKIT_DAEMON_SCHEMA";
  /** The key of the schema that is wrong. */
  readonly key: string;

  constructor(key: string, problem: string, options?: ErrorOptions) {
    super(`option "${key}" of the schema: ${problem}`, options);
    this.key = key;
  }
}

/** A metric's name breaks the naming rule. A mistake of the program's author: rename the metric. */
export class MetricNameError extends DaemonError {
  override readonly name = "MetricNameError";
  readonly code = "CELLKIT_DAEMON_METRIC_NAME";
  readonly metric: string;

  constructor(metric: string, problem: string, options?: ErrorOptions) {
    super(`metric "${metric}": ${problem}`, options);
    this.metric = metric;
  }
}

/** A file that should hold a secret is absent, unreadable, empty or too long. The message names the path, never the content. */
export class SecretFileError extends DaemonError {
  override readonly name = "SecretFileError";
  readonly code = "CELLKIT_DAEMON_SECRET_FILE";
  readonly path: string;

  constructor(path: string, problem: string, options?: ErrorOptions) {
    super(`secret file ${path}: ${problem}`, options);
    this.path = path;
  }
}

/**
 * Certificate, key or client CA of a listener cannot be used: absent, unreadable, too long, not PEM, not of each other, or not valid
 * now. The message names the file, never its content.
 */
export class CertificateFileError extends DaemonError {
  override readonly name = "CertificateFileError";
  readonly code = "CELLKIT_DAEMON_CERTIFICATE";
  /** The file that is wrong; of a pair that does not match, the certificate's. */
  readonly path: string;
  /** What is wrong with it, to be put behind its path. */
  readonly problem: string;

  constructor(path: string, problem: string, options?: ErrorOptions) {
    super(`the certificate cannot be used: ${path} ${problem}`, options);
    this.path = path;
    this.problem = problem;
  }
}

/** A listener could not be opened. The message says whether the port is taken, forbidden, or the address not of this machine. */
export class ListenError extends DaemonError {
  override readonly name = "ListenError";
  readonly code = "CELLKIT_DAEMON_LISTEN";
  readonly host: string;
  readonly port: number;

  constructor(host: string, port: number, options?: ErrorOptions) {
    super(`cannot listen on ${host}:${port}: ${listenAdvice(options?.cause)}`, options);
    this.host = host;
    this.port = port;
  }
}

function listenAdvice(cause: unknown): string {
  const code = (cause as NodeJS.ErrnoException | undefined)?.code;
  switch (code) {
    case "EADDRINUSE":
      return "the port is taken; stop the process that has it, or choose another port";
    case "EACCES":
      return "this user may not open that port; choose one from 1024 up";
    case "EADDRNOTAVAIL":
      return "that address does not belong to this machine; choose one of its own, or 0.0.0.0";
    case "CLOSED":
      return "the server was closed; a closed server does not open again";
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return "the host name does not resolve; choose an address of this machine";
    default:
      return `${code ?? (cause instanceof Error ? cause.message : "no reason was given")}; choose another address`;
  }
}

/** A request's body is longer than the server accepts; the request is answered with 413. */
export class BodyTooLargeError extends DaemonError {
  override readonly name = "BodyTooLargeError";
  readonly code = "CELLKIT_DAEMON_BODY_TOO_LARGE";
  readonly maxBytes: number;

  constructor(maxBytes: number, options?: ErrorOptions) {
    super(`the body is longer than ${maxBytes} bytes; send less`, options);
    this.maxBytes = maxBytes;
  }
}

/** Steps were added to, or run by, a stop sequence that is past that. A mistake of the program's author. */
export class StopSequenceError extends DaemonError {
  override readonly name = "StopSequenceError";
  readonly code = "CELLKIT_DAEMON_STOP_SEQUENCE";
  readonly step: string;

  constructor(step: string, options?: ErrorOptions) {
    super(`stop step "${step}" was added after the stop began; add all steps while starting`, options);
    this.step = step;
  }
}

/** A step of the ordered stop did not end within its bound; the stop went on without it. Give the step more time, or find what it waits for. */
export class StepTimeoutError extends DaemonError {
  override readonly name = "StepTimeoutError";
  readonly code = "CELLKIT_DAEMON_STEP_TIMEOUT";
  readonly step: string;
  readonly boundMs: number;

  constructor(step: string, boundMs: number, options?: ErrorOptions) {
    super(
      `stop step "${step}" did not end within ${Math.round(boundMs)} ms; the stop goes on without it`,
      options,
    );
    this.step = step;
    this.boundMs = boundMs;
  }
}

/** A daemon started as a child ended before it was ready, or was not ready in time. The message ends with its last lines. */
export class DaemonProcessError extends DaemonError {
  override readonly name = "DaemonProcessError";
  readonly code = "CELLKIT_DAEMON_PROCESS";
  /** What the process is called. */
  readonly process: string;
  /** Its last lines of output, oldest first. */
  readonly lastLines: readonly string[];

  constructor(process: string, what: string, lastLines: readonly string[], options?: ErrorOptions) {
    const said =
      lastLines.length === 0 ? "it printed nothing" : `its last lines:\n  ${lastLines.join("\n  ")}`;
    super(`${process} ${what}; ${said}`, options);
    this.process = process;
    this.lastLines = [...lastLines];
  }
}
