import { type SpawnOptions, spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

/** A process of this test that prints JSON, one value a line. */
export interface LineProcess {
  /** The next line's value. Fails when the process ends first. */
  next(): Promise<unknown>;
  /** Writes one line to its input. */
  tell(line: string): void;
}

/** Starts a command; killed when the test ends. */
export function startLines(command: readonly string[], options: SpawnOptions = {}): LineProcess {
  const [program = "", ...args] = command;
  const child = spawn(program, args, { ...options, stdio: ["pipe", "pipe", "inherit"] });
  const gone = new Promise((done) => child.once("exit", done));
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await gone;
  });
  if (child.stdin === null || child.stdout === null) throw new TypeError("no pipes");
  const { stdin } = child;
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    tell: (line) => stdin.write(`${line}\n`),
    next: async () => {
      const { value, done } = await lines.next();
      if (done === true) throw new TypeError(`${command.join(" ")} ended without a further line`);
      return JSON.parse(value);
    },
  };
}

/** The command that starts a program of test/support from its source. */
export function supportProgram(name: string, ...args: readonly string[]): string[] {
  return [
    process.execPath,
    "--conditions=@cellkit/source",
    fileURLToPath(new URL(name, import.meta.url)),
    ...args,
  ];
}

/** Runs a command to its end and answers its exit status. */
export function statusOf(command: readonly string[]): number | null {
  const [program = "", ...args] = command;
  return spawnSync(program, args).status;
}
