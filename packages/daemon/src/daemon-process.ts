// A daemon started as a child process: for `cellkit dev`, for demos and for tests that drain and kill real processes.
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { DaemonProcessError } from "./errors.ts";

/** How a daemon's process ended: an exit code, or the signal that ended it. */
export interface ProcessExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** What to start, and who hears its output. */
export interface DaemonProcessOptions {
  /** The program, for example `process.execPath`. */
  command: string;
  args: readonly string[];
  /** The whole environment of the child. @default the environment of this process */
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  /** Hears every line of standard output and standard error, in the order in which each stream gave it. */
  onLine?: (line: string, stream: "stdout" | "stderr") => void;
}

/** How many of its last lines are kept to explain an unexpected end. */
const keptLineCount = 40;

/**
 * One running daemon process. It is started by the constructor; `exited` settles once it is gone and its output is read.
 * The child does not outlive this process by accident: it is killed when this process exits normally.
 */
export class DaemonProcess {
  readonly exited: Promise<ProcessExit>;
  readonly #child: ChildProcess;
  readonly #lastLines: string[] = [];
  readonly #name: string;
  #exit: ProcessExit | undefined;

  /** @param name what the process is called in errors, for example `celld node-1` */
  constructor(name: string, options: DaemonProcessOptions) {
    this.#name = name;
    const child = spawn(options.command, options.args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: options.env ?? process.env,
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    this.#child = child;
    const killWithParent = () => child.kill("SIGKILL");
    process.on("exit", killWithParent);
    this.exited = new Promise((resolve) => {
      const end = (exit: ProcessExit) => {
        process.off("exit", killWithParent);
        this.#exit = exit;
        resolve(exit);
      };
      child.once("error", (error) => {
        this.#lastLines.push(`could not be started: ${error.message}`);
        end({ code: null, signal: null });
      });
      child.once("close", (code, signal) => end({ code, signal }));
    });
    for (const stream of ["stdout", "stderr"] as const) {
      createInterface({ input: child[stream] }).on("line", (line) => {
        this.#lastLines.push(line);
        if (this.#lastLines.length > keptLineCount) this.#lastLines.shift();
        options.onLine?.(line, stream);
      });
    }
  }

  /** The process id, or undefined when it could not be started. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** How it ended, or undefined while it runs. */
  get exit(): ProcessExit | undefined {
    return this.#exit;
  }

  /** Its last lines of output, at most 40, oldest first. */
  get lastLines(): readonly string[] {
    return this.#lastLines;
  }

  /** Sends a signal; nothing happens when it has ended. */
  signal(signal: NodeJS.Signals): void {
    if (this.#exit === undefined) this.#child.kill(signal);
  }

  /** SIGTERM, then waits for its end; SIGKILL after `boundMs`. */
  async stop(boundMs: number): Promise<ProcessExit> {
    this.signal("SIGTERM");
    const timer = setTimeout(() => this.signal("SIGKILL"), boundMs);
    try {
      return await this.exited;
    } finally {
      clearTimeout(timer);
    }
  }

  /** SIGKILL, then waits for its end. */
  kill(): Promise<ProcessExit> {
    this.signal("SIGKILL");
    return this.exited;
  }

  /**
   * Waits until `condition` answers true, asking it every `everyMs`.
   * @throws DaemonProcessError (`CELLKIT_DAEMON_PROCESS`) when the process ends first or `boundMs` passes
   */
  async until(what: string, condition: () => Promise<boolean>, boundMs: number, everyMs = 25): Promise<void> {
    const deadlineMs = performance.now() + boundMs;
    for (;;) {
      if (this.#exit !== undefined)
        throw this.#failure(`ended (${describeExit(this.#exit)}) before it was ${what}`);
      if (await condition()) return;
      if (performance.now() > deadlineMs) throw this.#failure(`was not ${what} within ${boundMs} ms`);
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
  }

  #failure(what: string): DaemonProcessError {
    return new DaemonProcessError(this.#name, what, this.#lastLines);
  }
}

/** `code 2` or `signal SIGKILL`. */
function describeExit({ code, signal }: ProcessExit): string {
  return signal === null ? `code ${code ?? "none"}` : `signal ${signal}`;
}
