/** The base class of what this package throws itself. Match on `code`. */
export abstract class TestingError extends Error {
  abstract override readonly name: string;
  abstract readonly code: `CELLKIT_TESTING_${string}`;
}

/** An option or argument is outside its range. Correct the value named in the message. */
export class TestingOptionError extends TestingError {
  override readonly name = "TestingOptionError";
  readonly code = "CELLKIT_TESTING_OPTION";
  readonly option: string;

  constructor(option: string, problem: string, options?: ErrorOptions) {
    super(`${option} ${problem}`, options);
    this.option = option;
  }
}

/** The calls that came are not those of the script. `step` counts from 0; the message shows what was expected and what came. */
export class ScriptError extends TestingError {
  override readonly name = "ScriptError";
  readonly code = "CELLKIT_TESTING_SCRIPT";
  /** The step that was not followed. */
  readonly step: number;

  constructor(step: number, problem: string, options?: ErrorOptions) {
    super(`script, step ${step}: ${problem}`, options);
    this.step = step;
  }
}

/** What a test waited for did not happen in time. */
export class WaitTimeoutError extends TestingError {
  override readonly name = "WaitTimeoutError";
  readonly code = "CELLKIT_TESTING_TIMEOUT";

  constructor(what: string, timeoutMs: number, options?: ErrorOptions) {
    super(`${what}: not within ${timeoutMs} ms; make it happen, or allow more time`, options);
  }
}

/** An execution ran more than once. */
export class RanTwiceError extends TestingError {
  override readonly name = "RanTwiceError";
  readonly code = "CELLKIT_TESTING_RAN_TWICE";
  /** The ids and how often each ran. */
  readonly runs: ReadonlyMap<string, number>;

  constructor(runs: ReadonlyMap<string, number>, options?: ErrorOptions) {
    const shown = [...runs].slice(0, 5).map(([id, count]) => `${id} ${count} times`);
    const more = runs.size > shown.length ? ` and ${runs.size - shown.length} more ids` : "";
    super(`ran more than once: ${shown.join(", ")}${more}; each id may run at most once`, options);
    this.runs = runs;
  }
}

/** A journal's directory holds something that this package did not write. Give an empty directory, or the one of an earlier start. */
export class JournalError extends TestingError {
  override readonly name = "JournalError";
  readonly code = "CELLKIT_TESTING_JOURNAL";
  readonly path: string;

  constructor(path: string, problem: string, options?: ErrorOptions) {
    super(`${path} ${problem}; give an empty directory, or that of an earlier start`, options);
    this.path = path;
  }
}

/** A port could not be listened at; `cause` is the system's error. Take another port, or leave it out for any free one. */
export class ListenError extends TestingError {
  override readonly name = "ListenError";
  readonly code = "CELLKIT_TESTING_LISTEN";
  readonly host: string;
  readonly port: number;

  constructor(host: string, port: number, options?: ErrorOptions) {
    const reason = systemCode(options?.cause) ?? "unknown error";
    const advice =
      reason === "EADDRINUSE" ? "somebody else has it: take another port" : "take another address";
    super(
      `cannot listen on ${host}, port ${port} (${reason}); ${advice}, or leave it out for any free one`,
      options,
    );
    this.host = host;
    this.port = port;
  }
}

/** The system's code in an error, or in what led to it. */
function systemCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  return systemCode(error.cause) ?? ("code" in error ? String(error.code) : undefined);
}

/** A process of this package did not start, or ended while it was needed. The message has the last of what it wrote. */
export class ProcessError extends TestingError {
  override readonly name = "ProcessError";
  readonly code = "CELLKIT_TESTING_PROCESS";
}
