import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

/** A process of this test that prints one JSON value a line. */
export interface Child {
  process: ChildProcess;
  /** The next line's value. Fails when the process ends first. */
  next(): Promise<unknown>;
  /** Writes one line to its input. */
  tell(value: unknown): void;
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>;
}

/** Starts `test/fixtures/<script>` with arguments; killed when the test ends. */
export function startChild(script: string, args: readonly string[], before: readonly string[] = []): Child {
  const path = fileURLToPath(new URL(`../fixtures/${script}`, import.meta.url));
  const [command = process.execPath, ...rest] = [...before, process.execPath, path, ...args];
  const child = spawn(command, rest, { stdio: ["pipe", "pipe", "inherit"] });
  const gone = new Promise<void>((done) => child.once("exit", () => done()));
  // The iterator at once, not at the first next(): readline keeps no line for an iterator that does not exist yet.
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const kill = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await gone;
  };
  onTestFinished(kill);
  return {
    process: child,
    kill,
    tell: (value) => child.stdin.write(`${JSON.stringify(value)}\n`),
    async next() {
      const { value, done } = await lines.next();
      if (done === true) throw new TypeError(`${script} ended without a further line`);
      return JSON.parse(value);
    },
  };
}
