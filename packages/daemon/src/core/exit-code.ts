/** How a daemon's process ends. The same numbers for every daemon, so that a supervisor can tell a bad flag from a crash. */
export const exitCodes = {
  /** Stopped cleanly. */
  clean: 0,
  /** A failure: the reason is the last line of the log. */
  failure: 1,
  /** Bad flags or configuration: a restart cannot help. */
  badConfig: 2,
  /** Fenced: another node may own what this one owned. */
  fenced: 3,
  /** The ordered stop ran out of time: something was cut off. */
  drainTimeout: 4,
  /** A second signal ended it at once. */
  secondSignal: 130,
} as const;

/** One of {@link exitCodes}. */
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** What the exit codes mean that every daemon has. */
export const usualExitCodeMeanings: Readonly<Record<number, string>> = {
  0: "stopped cleanly",
  1: "failure; the last line of the log says why",
  2: "bad flags or configuration",
  4: "the drain ran out of time and something was cut off",
  130: "a second signal ended it at once",
};

/** What each exit code means, for `--help` and READMEs: those that every daemon has, and 3, which is a node's of a fleet. */
export const exitCodeMeanings: Readonly<Record<number, string>> = {
  ...usualExitCodeMeanings,
  3: "fenced: lost its lease, another node may have taken over",
};

/**
 * The exit code an error asks for: its own `exitCode` when that is a whole number from 1 to 125, else 1.
 * Only classes that know they concern the whole process carry one ({@link ConfigError} does).
 */
export function exitCodeOf(error: unknown): number {
  const code = (error as { exitCode?: unknown } | null | undefined)?.exitCode;
  return typeof code === "number" && Number.isInteger(code) && code >= 1 && code <= 125
    ? code
    : exitCodes.failure;
}

/**
 * The exit code of an ordered stop: 0 when every step is done, 4 when any ran out of time, else what the first failed
 * step's error asks for.
 */
export function exitCodeOfStop(
  steps: ReadonlyArray<{ outcome: "done" | "failed" | "timed out"; error?: unknown }>,
): number {
  const codes = steps
    .filter(({ outcome }) => outcome !== "done")
    .map(({ outcome, error }) => (outcome === "timed out" ? exitCodes.drainTimeout : exitCodeOf(error)));
  return codes.includes(exitCodes.drainTimeout) ? exitCodes.drainTimeout : (codes[0] ?? exitCodes.clean);
}
