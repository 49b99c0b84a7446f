// One workerd process and its watcher. The watcher is a small shell that waits on a pipe which only this process holds:
// when this process ends in any way, kill -9 included, the pipe closes and the watcher kills workerd. The shell starts the
// watcher first and then becomes workerd itself, so there is no moment without one, and workerd is our direct child.
import { type ChildProcess, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { z } from "zod";
import { WorkerdStartError } from "./errors.ts";
import { readLines } from "./lines.ts";

/** How a process ended. */
export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The last lines that it wrote to its error output, oldest first. */
  readonly errorLines: readonly string[];
}

export interface ChildOptions {
  readonly binary: string;
  readonly configFile: string;
  readonly directory: string;
  readonly environment: NodeJS.ProcessEnv;
  /** An open file that workerd inherits: what is locked there stays locked for as long as workerd lives. */
  readonly lockFd?: number | undefined;
  /** Called for each line that workerd or the Worker prints. */
  readonly onLine: (stream: "stdout" | "stderr", line: string) => void;
}

/** A running workerd. */
export interface WorkerdChild {
  readonly pid: number;
  /** The loopback port of its cluster listener, once it reported it. */
  readonly clusterPort: Promise<number>;
  /** Resolves when the process is reaped and its output was read to the end; never rejects. */
  readonly exited: Promise<ChildExit>;
  kill(signal: "SIGTERM" | "SIGKILL"): void;
}

const watchAndBecome = `( read -r line <&4 || kill -9 $$ ) >/dev/null 2>&1 3>&- 5>&- &
exec 4<&-
exec "$@"`;
const keptLines = 200;
const eventSchema = z.looseObject({ event: z.string(), port: z.number().optional() });

/**
 * Starts workerd on a config.
 *
 * @throws WorkerdStartError (CELLKIT_ENGINE_WORKERD_START) when the process could not be made at all
 */
export async function startChild(options: ChildOptions): Promise<WorkerdChild> {
  const command = [options.binary, "serve", "--experimental", "--control-fd=3", options.configFile, "config"];
  const child = spawn("/bin/sh", ["-c", watchAndBecome, "cellkit-workerd", ...command], {
    cwd: options.directory,
    // A session of its own: Ctrl-C reaches us alone, and we drain.
    detached: true,
    env: options.environment,
    stdio: ["ignore", "pipe", "pipe", "pipe", "pipe", options.lockFd ?? "ignore"],
  });
  await spawned(child);
  const watcher = child.stdio[4] as Writable;
  const events = child.stdio[3] as Readable;
  // Both ends live as long as the process; an error here is its end, which `exit` reports.
  for (const stream of [watcher, events]) stream.on("error", () => undefined);

  const errorLines: string[] = [];
  const outputs = [
    readLines(child.stdout as Readable, (line) => options.onLine("stdout", line)),
    readLines(child.stderr as Readable, (line) => {
      errorLines.push(line);
      if (errorLines.length > keptLines) errorLines.shift();
      options.onLine("stderr", line);
    }),
  ];
  const port = Promise.withResolvers<number>();
  const reading = readLines(events, (line) => {
    const event = eventSchema.safeParse(safeJson(line));
    if (event.data?.event === "listen-cluster" && event.data.port !== undefined)
      port.resolve(event.data.port);
  });
  port.promise.catch(() => undefined);
  const exited = new Promise<ChildExit>((resolve) => {
    child.once("exit", (code, signal) => {
      // Tells the watcher that there is nothing left to kill; the process number may soon belong to another process.
      watcher.end("done\n");
      void Promise.all([...outputs, reading]).then(() => {
        port.reject(new WorkerdStartError("workerd ended before it listened"));
        resolve({ code, signal, errorLines });
      });
    });
  });
  return {
    pid: child.pid ?? 0,
    clusterPort: port.promise,
    exited,
    kill: (signal) => void child.kill(signal),
  };
}

async function spawned(child: ChildProcess): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (cause) => {
      reject(new WorkerdStartError(`workerd could not be started: ${cause.message}`, { cause }));
    });
  });
}

function safeJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
