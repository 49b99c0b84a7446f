import { type CommandGroup, type ParsedCommand, parseCommand } from "./core/command.ts";
import { exitCodeOf, exitCodes } from "./core/exit-code.ts";
import { refuseStart } from "./refuse-start.ts";
import { ReleaseStack } from "./release-stack.ts";
import { requireNode } from "./require-node.ts";
import { watchSignals } from "./signals.ts";
import type { Step } from "./stop-sequence.ts";

/** What every command is given. */
export interface CommandContext {
  /** Aborted by the first SIGTERM, SIGINT or SIGHUP; hand it to everything that waits. */
  readonly signal: AbortSignal;
  /** Says how to give back what was just taken: run in reverse order when the command ends, however it ends, each within 5 s. */
  defer(name: string, release: Step): void;
  /** Writes data, and nothing but data, to stdout. A line break is added. */
  print(line: string): void;
  /** Writes a line for people to stderr. */
  note(line: string): void;
}

/** A program of many commands, as its `main.ts` describes it. */
export interface CommandProgram {
  /** The program's name, as users type it. */
  name: string;
  version: string;
  commands: CommandGroup<CommandContext>;
}

/**
 * Runs one command from its first word to its exit code; ends the process itself, so the promise never settles. The
 * command's own code, else 0; 2 for bad flags, and for no command, with the list of them on stderr; 1, or the error's `exitCode`, for an error, whose message is one line on
 * stderr; 130 when the first SIGINT, SIGTERM or SIGHUP made it fail, or when a second one came. Whoever reads its output and
 * has seen enough, as `head` has, ends it as a first signal does. Output that cannot be written, as on a full disk, ends it
 * with 1: nothing that was lost is told as done.
 */
export async function runCommand(program: CommandProgram): Promise<never> {
  requireNode(program.name);
  const parsed = await parseOrExit(program);
  const stopping = new AbortController();
  const releases = new ReleaseStack();
  const note = (line: string): void => void process.stderr.write(`${line}\n`);
  const handlers = {
    first: (signal: NodeJS.Signals) => stopping.abort(signal),
    second: () => process.exit(exitCodes.secondSignal),
  };
  watchSignals(handlers, "command");
  let lost: string | undefined;
  for (const stream of [process.stdout, process.stderr])
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE" && stream === process.stdout) lost ??= error.message;
      if (!stopping.signal.aborted) stopping.abort("nobody reads the output any more");
    });
  for (const warning of parsed.warnings) note(`${parsed.name}: ${warning}`);
  let exitCode: number;
  try {
    exitCode = await parsed.run({
      signal: stopping.signal,
      defer: (name, release) => releases.defer(name, release),
      print: (line) => void process.stdout.write(`${line}\n`),
      note,
    });
  } catch (error) {
    exitCode = stopping.signal.aborted ? exitCodes.secondSignal : exitCodeOf(error);
    if (!stopping.signal.aborted)
      note(`${parsed.name}: ${error instanceof Error ? error.message : String(error)}`);
  }
  for (const { name, outcome, error } of await releases.releaseAll()) {
    note(`${parsed.name}: ${name}: ${outcome}${error instanceof Error ? ` (${error.message})` : ""}`);
    if (exitCode === exitCodes.clean) exitCode = exitCodes.failure;
  }
  await written(process.stdout);
  if (lost !== undefined) {
    note(`${parsed.name}: standard output could not be written, and is not whole: ${lost}`);
    if (exitCode === exitCodes.clean || exitCode === exitCodes.secondSignal) exitCode = exitCodes.failure;
  }
  return process.exit(exitCode);
}

/** Waits until what was printed is written, or has failed and was told so. */
async function written(stream: NodeJS.WriteStream): Promise<void> {
  await new Promise<void>((resolve) => stream.write("", () => resolve()));
  await new Promise<void>((resolve) => setImmediate(resolve));
}

async function parseOrExit({
  name,
  version,
  commands,
}: CommandProgram): Promise<Extract<ParsedCommand<CommandContext>, { kind: "run" }>> {
  try {
    const argv = process.argv.slice(2);
    const parsed = await parseCommand(commands, { name, version, argv, env: process.env });
    if (parsed.kind === "run") return parsed;
    process.stdout.write(parsed.text);
    return process.exit(exitCodes.clean);
  } catch (error) {
    return refuseStart(error);
  }
}
