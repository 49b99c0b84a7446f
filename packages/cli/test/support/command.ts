// `cellkit` as a process, and what it said.
import { DaemonProcess } from "@cellkit/daemon";
import { until } from "../../../../tools/test-support/until.ts";
import { cellkitCommand } from "../../src/index.ts";

/** How a command ended. */
export interface Outcome {
  code: number | null;
  stdout: string[];
  stderr: string[];
}

/** A running `cellkit`. Its environment is `PATH`, `HOME` and what it is given. */
export class Command {
  readonly process: DaemonProcess;
  readonly stdout: string[] = [];
  readonly stderr: string[] = [];

  constructor(args: readonly string[], env: NodeJS.ProcessEnv = {}, cwd?: string) {
    const cellkit = cellkitCommand();
    this.process = new DaemonProcess("cellkit", {
      command: cellkit.command,
      args: [...cellkit.args, ...args],
      env: { PATH: process.env["PATH"], HOME: "/nonexistent", ...cache, ...env },
      ...(cwd === undefined ? {} : { cwd }),
      onLine: (line, stream) => void this[stream].push(line),
    });
  }

  /** Waits for its end. */
  async outcome(): Promise<Outcome> {
    const { code } = await this.process.exited;
    return { code, stdout: this.stdout, stderr: this.stderr };
  }

  /** Waits for a line on standard error; one that came before `from` lines were there does not count. */
  said(line: string | RegExp, { from = 0, boundMs = 120_000 } = {}): Promise<string> {
    return until(
      `line ${line} among:\n${this.stderr.join("\n")}`,
      () => {
        if (this.process.exit !== undefined) throw new Error(`it ended:\n${this.stderr.join("\n")}`);
        return this.stderr
          .slice(from)
          .find((each) => (typeof line === "string" ? each.includes(line) : line.test(each)));
      },
      boundMs,
    );
  }

  /** Waits for the `count`-th line on standard output, and answers all until then. */
  async printed(count: number, boundMs = 120_000): Promise<string[]> {
    await this.process.until(`printed ${count} lines`, async () => this.stdout.length >= count, boundMs);
    return this.stdout.slice(0, count);
  }
}

/** Compiled code is kept between the many starts of a test run. */
const cache = { NODE_COMPILE_CACHE: new URL("../.cache/compile", import.meta.url).pathname };

/** Runs a command to its end. */
export function run(args: readonly string[], env: NodeJS.ProcessEnv = {}, cwd?: string): Promise<Outcome> {
  return new Command(args, env, cwd).outcome();
}
