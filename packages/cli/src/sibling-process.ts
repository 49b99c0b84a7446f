// A `cellkit` command that runs beside the nodes of a local fleet, as a process of its own: its bucket, its relay.
import { fileURLToPath } from "node:url";
import { DaemonProcess } from "@cellkit/daemon";
import { ProcessStartError } from "./errors.ts";
import { reasonOf } from "./node-log.ts";

const startBoundMs = 30_000;
const stopBoundMs = 10_000;

/** What to run. */
export interface SiblingOptions {
  /** The command by its words, `bucket serve`; the first one is what the process is called when it does not start. */
  readonly command: readonly [name: string, ...words: string[]];
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** The variable that it prints, as `export NAME=VALUE`, once it listens. */
  readonly variable: string;
  /** Hears what it says about its work, not what it prints while it starts. */
  readonly onLog: (line: string) => void;
}

/** A command that runs. */
export interface SiblingProcess {
  readonly process: DaemonProcess;
  /** Of the variable. */
  readonly value: string;
  /** SIGTERM, and SIGKILL after 10 s. */
  stop(): Promise<void>;
}

/** How to start `cellkit` on this Node: from its source in the workspace, from its built file elsewhere. */
export function cellkitCommand(): { command: string; args: string[] } {
  const source = import.meta.url.endsWith(".ts");
  const main = fileURLToPath(new URL(source ? "./main.ts" : "./main.js", import.meta.url));
  return { command: process.execPath, args: [...(source ? ["--conditions=@cellkit/source"] : []), main] };
}

/**
 * Starts it and waits until it has printed its variable.
 * @throws ProcessStartError (`CELLKIT_CLI_PROCESS_START`); the process is gone then
 */
export async function startSibling(options: SiblingOptions): Promise<SiblingProcess> {
  const { command, variable, env, onLog } = options;
  const cellkit = cellkitCommand();
  const assignment = new RegExp(`^export ${variable}=(\\S+)$`);
  let value = "";
  // Until then its lines are for the reason of a start that failed.
  let started = false;
  const child = new DaemonProcess(`cellkit ${command.join(" ")}`, {
    command: cellkit.command,
    args: [...cellkit.args, ...command, ...options.args],
    env,
    onLine: (line, stream) => {
      if (stream === "stdout") value ||= assignment.exec(line)?.[1] ?? "";
      else if (started) onLog(line);
    },
  });
  try {
    await child.until("listening", async () => value !== "", startBoundMs);
  } catch (cause) {
    await child.kill();
    throw new ProcessStartError(command[0], reasonOf(child.lastLines), { cause });
  }
  started = true;
  return { process: child, value, stop: async () => void (await child.stop(stopBoundMs)) };
}
