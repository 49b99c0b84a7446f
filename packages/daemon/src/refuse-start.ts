import { exitCodeOf } from "./core/exit-code.ts";
import { ConfigError } from "./errors.ts";

/**
 * Ends a process whose flags and environment cannot be used, before anything was started: what is wrong goes to stderr, last, below the
 * help if the error has it.
 */
export function refuseStart(error: unknown): never {
  if (error instanceof ConfigError && error.help !== undefined) process.stderr.write(`${error.help}\n`);
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  return process.exit(exitCodeOf(error));
}
