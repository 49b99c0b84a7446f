import { createRequire } from "node:module";
import {
  type DestinationStream,
  destination,
  type Logger,
  type LoggerOptions,
  pino,
  stdTimeFunctions,
} from "pino";
import { z } from "zod";

export type { Logger } from "pino";

/** What is logged: this level and all above it. */
export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";

/** `auto`: for people on a terminal, JSON lines otherwise. */
export type LogFormat = "auto" | "json" | "pretty";

/** How a logger is made. */
export interface CreateLoggerOptions {
  /** The program, in each line as `name`. */
  name: string;
  /** Default "info". */
  level?: LogLevel;
  /** Default "auto". */
  format?: LogFormat;
  /** Where lines go: a daemon's log is its stdout, a command keeps stdout for data and logs to "stderr". Default "stdout". */
  to?: "stdout" | "stderr";
  /** Instead of `to`: anything with a `write`. */
  stream?: DestinationStream;
  /** Whether a terminal reads it. Default: whether `to` is one; false with `stream`. */
  isTty?: boolean;
  /** Fields of every line, for example `{ node: "node-1" }`. Default: none. */
  fields?: Record<string, unknown>;
  /** Read for `NO_COLOR` (any text but the empty one) and `TERM=dumb`. Default `process.env`. */
  env?: Readonly<Record<string, string | undefined>>;
}

/**
 * Names of fields whose values never reach a log, at the top of a line and up to two objects deep. A net under the rule
 * that nobody logs a secret, not a replacement for it: text inside a message is not searched.
 */
export const redactedFields: readonly string[] = [
  "authorization",
  "cookie",
  "set-cookie",
  "proxy-authorization",
  "password",
  "passphrase",
  "secret",
  "secrets",
  "secretAccessKey",
  "sessionToken",
  "token",
  "credentials",
  "privateKey",
  "peerKey",
];

/**
 * The logger of a program: pino, one JSON object a line with `level` as a word and `time` in ISO 8601; on a terminal
 * pino-pretty. Written synchronously, so that the last line before an exit is there.
 */
export function createLogger(options: CreateLoggerOptions): Logger {
  const { name, level = "info", format = "auto", to = "stdout", fields = {}, env = process.env } = options;
  const out = process[to];
  const isTty = options.isTty ?? (options.stream === undefined && out.isTTY === true);
  const stream = options.stream ?? destination({ dest: to === "stdout" ? 1 : 2, sync: true });
  const pinoOptions: LoggerOptions = {
    level,
    base: { name, ...fields },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: redactedFields.flatMap(pathsOf), censor: "(redacted)" },
  };
  if (format === "json" || (format === "auto" && !isTty)) return pino(pinoOptions, stream);
  const colorize = isTty && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb";
  // Loaded only here: a daemon without a terminal starts sooner without it.
  const { prettyFactory } = createRequire(import.meta.url)("pino-pretty") as typeof import("pino-pretty");
  const forPeople = prettyFactory({ colorize, translateTime: "SYS:HH:MM:ss.l" });
  return pino(pinoOptions, { write: (line) => void stream.write(forPeople(line)) });
}

function pathsOf(field: string): string[] {
  const key = `["${field}"]`;
  return [key, `*${key}`, `*.*${key}`];
}

/**
 * The options that every daemon has, to be spread into its schema: `--log-level` and `--log-format`.
 * @param envPrefix for example `CELLD_`, which makes `CELLD_LOG_LEVEL` and `CELLD_LOG_FORMAT`
 */
export function logOptions(envPrefix: string) {
  return {
    logLevel: z
      .enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"])
      .default("info")
      .meta({
        description: "What is logged: this level and all above it. From debug on, errors show their stack.",
        env: `${envPrefix}LOG_LEVEL`,
        section: "Logs",
        placeholder: "LEVEL",
        emptyIsUnset: true,
      }),
    logFormat: z
      .enum(["auto", "json", "pretty"])
      .default("auto")
      .meta({
        description:
          "JSON lines, or lines for people; auto takes the latter on a terminal. NO_COLOR is respected.",
        env: `${envPrefix}LOG_FORMAT`,
        section: "Logs",
        emptyIsUnset: true,
      }),
  };
}
