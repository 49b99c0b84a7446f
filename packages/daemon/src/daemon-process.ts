// A daemon started as a child process: for `cellkit dev`, for demos and for tests that drain and kill real processes.
//
// The child never outlives its parent. It is started by a shell that first leaves a watcher behind and then becomes the
// program itself. The watcher waits on a pipe whose other end only the parent holds: when the parent ends in any way, kill -9
// included, the pipe closes and the watcher kills the child. Nothing is asked of the child for that; one that hangs, or has
// not got as far as reading its flags, is killed all the same.
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Duplex, Readable } from "node:stream";
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

/** File descriptor 3 is the parent's pipe. A line on it says that the child is gone already and nothing is left to kill. */
const watchAndBecome = `( read -r line <&3 || kill -9 $$ ) >/dev/null 2>&1 &
exec 3<&-
exec "$@"`;

/**
 * One running daemon process. It is started by the constructor; `exited` settles once it is gone and its output is read.
 * It is killed when this process ends, however that ends. It has a session of its own: Ctrl-C reaches this process alone,
 * which decides what becomes of the child. Needs `/bin/sh`.
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
    const child = spawn("/bin/sh", ["-c", watchAndBecome, name, options.command, ...options.args], {
      stdio: ["ignore", "pipe", "pipe", "pipe"],
      detached: true,
      env: options.env ?? process.env,
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    this.#child = child;
    const watcher = child.stdio[3] as Duplex;
    // Its end is the child's, which `exit` tells.
    watcher.on("error", () => undefined);
    child.once("exit", () => watcher.end("done\n"));
    this.exited = new Promise((resolve) => {
      const end = (exit: ProcessExit) => {
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
      createInterface({ input: child[stream] as Readable }).on("line", (line) => {
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
