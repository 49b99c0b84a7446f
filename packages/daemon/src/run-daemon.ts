import type { z } from "zod";
import { exitCodeOf, exitCodeOfStop, exitCodes } from "./core/exit-code.ts";
import type { ConfigSchema } from "./core/option.ts";
import { type ParseOptions, parseConfig } from "./core/parse-config.ts";
import { createLogger, type LogFormat, type Logger, type LogLevel } from "./logger.ts";
import { refuseStart } from "./refuse-start.ts";
import { ReleaseStack } from "./release-stack.ts";
import { requireNode } from "./require-node.ts";
import { watchSignals } from "./signals.ts";
import type { Step, StopReport } from "./stop-sequence.ts";

/** What a daemon's configuration holds at least: spread {@link logOptions} into the schema. */
export interface LogConfig {
  logLevel: LogLevel;
  logFormat: LogFormat;
}

/** What `start` is given. */
export interface DaemonContext<C> {
  readonly config: C;
  /** Where each value came from. */
  readonly from: Readonly<Record<string, string>>;
  readonly log: Logger;
  /** Aborted when the daemon is told to stop; hand it to everything that waits while starting. */
  readonly signal: AbortSignal;
  /**
   * Says how to give back what was just taken. Run in reverse order when the start fails and after the stop, each within
   * 5 s; closing something a second time must be fine.
   */
  defer(name: string, release: Step): void;
  /** Begins the ordered stop, as the first SIGTERM does (`POST /shutdown`). */
  requestStop(reason: string): void;
  /**
   * Ends the daemon without its ordered stop: logs the error, gives everything back, ends with the code.
   * @param exitCode default: the error's own `exitCode`, else 1
   */
  fail(error: unknown, exitCode?: number): void;
}

/** A daemon that has started. */
export interface RunningDaemon {
  /** The ordered stop; called once. The report decides the exit code: 0; 4 when a step ran out of time; else a failed step's own `exitCode`, or 1. */
  stop(reason: string): Promise<StopReport>;
}

/** A daemon, as its `main.ts` describes it. */
export interface Daemon<S extends ConfigSchema> extends Omit<ParseOptions, "argv" | "env"> {
  schema: S;
  /** The name in each log line. Default: the command's name. */
  logName?: string;
  /** Fields of each log line, for example the node's name. Default: none. */
  logFields?(config: z.output<S>): Record<string, unknown>;
  /** Builds and starts the parts. When it rejects, what it deferred is given back and the process ends. */
  start(context: DaemonContext<z.output<S>>): Promise<RunningDaemon>;
}

/** How long a start may go on after it was told to stop. */
const START_ABORT_MS = 10_000;

/**
 * Runs a daemon from its first flag to its exit code: reads the configuration, starts, waits for SIGTERM or SIGINT, stops
 * in order. Ends the process itself; the promise never settles. Exit codes: {@link exitCodes}; a start without anything that is needed ends with 2, help on stderr. A second signal ends the
 * process at once with 130. A start that fails prints one line: the error's message. The stack of an error with one of our codes shows from log level debug on.
 */
export async function runDaemon<S extends ConfigSchema>(
  daemon: Daemon<S> &
    (z.output<S> extends LogConfig ? unknown : { schema: "spread logOptions() into the schema" }),
): Promise<never> {
  requireNode(daemon.name);
  const parsed = parseOrExit(daemon);
  const settings = parsed.config as z.output<S> & LogConfig;
  const log = createLogger({
    name: daemon.logName ?? daemon.name,
    level: settings.logLevel,
    format: settings.logFormat,
    fields: daemon.logFields?.(parsed.config) ?? {},
  });
  for (const warning of parsed.warnings) log.warn(warning);

  const releases = new ReleaseStack();
  const stopping = new AbortController();
  const ended = promiseToSettle<number>();
  const asked = promiseToSettle<string>();
  const requestStop = (reason: string): void => {
    if (stopping.signal.aborted) return;
    log.info({ reason }, "stopping");
    stopping.abort(reason);
    asked.resolve(reason);
  };
  const fail = (error: unknown, exitCode = exitCodeOf(error)): void => {
    logFatal(log, error);
    stopping.abort(error);
    ended.resolve(exitCode);
  };
  watchSignals({
    first: requestStop,
    second(signal) {
      log.fatal({ signal }, "second signal: ending at once");
      process.exit(exitCodes.secondSignal);
    },
  });
  watchUncaught(log);

  const context: DaemonContext<z.output<S>> = {
    config: parsed.config,
    from: parsed.from,
    log,
    signal: stopping.signal,
    defer: (name, release) => releases.defer(name, release),
    requestStop,
    fail,
  };
  runToEnd(daemon, context, asked.promise).then(ended.resolve, fail);
  let exitCode = await ended.promise;
  for (const { name, outcome, error } of await releases.releaseAll()) {
    log.error({ release: name, outcome, ...errorFields(log, error) }, "could not give back what was taken");
    if (exitCode === exitCodes.clean) exitCode = exitCodes.failure;
  }
  log.info({ exitCode }, "ended");
  return process.exit(exitCode);
}

/** Start, wait for the wish to stop, stop; answers with the exit code. Rejects with what made the start or the stop fail. */
async function runToEnd<S extends ConfigSchema>(
  daemon: Daemon<S>,
  context: DaemonContext<z.output<S>>,
  asked: Promise<string>,
): Promise<number> {
  const starting = daemon.start(context);
  const startLate = asked.then(
    () => new Promise<"late">((resolve) => setTimeout(() => resolve("late"), START_ABORT_MS).unref()),
  );
  let running: RunningDaemon;
  try {
    const first = await Promise.race([starting, startLate]);
    if (first === "late") {
      context.log.error(`the start did not end within ${START_ABORT_MS} ms of the wish to stop`);
      return exitCodes.drainTimeout;
    }
    running = first;
  } catch (error) {
    if (!context.signal.aborted) throw error;
    context.log.info("stopped while starting");
    return exitCodes.clean;
  }
  const report = await running.stop(await asked);
  for (const { name, outcome, tookMs, error } of report.steps) {
    if (outcome !== "done")
      context.log.error(
        { step: name, tookMs: Math.round(tookMs), ...errorFields(context.log, error) },
        `stop: ${outcome}`,
      );
  }
  return exitCodeOfStop(report.steps);
}

function parseOrExit<S extends ConfigSchema>(daemon: Daemon<S>) {
  try {
    const parsed = parseConfig(daemon.schema, { ...daemon, argv: process.argv.slice(2), env: process.env });
    if (parsed.kind === "config") return parsed;
    process.stdout.write(parsed.text);
    return process.exit(exitCodes.clean);
  } catch (error) {
    return refuseStart(error);
  }
}

/** One clear line for a person. */
function logFatal(log: Logger, error: unknown): void {
  log.fatal(errorFields(log, error), error instanceof Error ? error.message : String(error));
}

/** A typed error is told by its code; its stack only where the level asks for it. Any other error is a bug: with its stack. */
function errorFields(log: Logger, error: unknown): Record<string, unknown> {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  const typed = typeof code === "string" && code.startsWith("CELLKIT_");
  return {
    ...(typeof code === "string" ? { code } : {}),
    ...(!typed || log.isLevelEnabled("debug") ? { err: error } : {}),
  };
}

/** An error nobody caught is a bug: it is logged with its stack, and the process ends, since its state is unknown. */
function watchUncaught(log: Logger): void {
  process.on("uncaughtException", (error, origin) => {
    log.fatal({ err: error, origin }, "an error that nobody caught; ending");
    process.exit(exitCodes.failure);
  });
}

/** A promise and the function that settles it (`Promise.withResolvers` is not in the language level we type against). */
function promiseToSettle<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
