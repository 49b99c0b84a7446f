import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { CallKind } from "../core/call.ts";
import type { CallMatch } from "../core/fault.ts";
import { checkedFault, processFaults } from "../core/fault-table.ts";
import { checkMembers, needed, text } from "../core/given.ts";
import type { RunEnd } from "../core/run-end.ts";
import type { FaultOptions } from "../dispatcher/fault-list.ts";
import { checkedNode, type NodeOptions } from "../dispatcher/node-figures.ts";
import { readRuns } from "../dispatcher/runs.ts";
import type { RecordedCall } from "../dispatcher/transcript.ts";
import { ProcessError, TestingOptionError } from "../errors.ts";
import type { Command, DispatcherProcessOptions, ProcessFault, Reply } from "./messages.ts";

/** A dispatcher in a process of its own. */
export interface DispatcherProcess extends AsyncDisposable {
  /** Stays the same over restarts. */
  readonly origin: string;
  readonly pid: number | undefined;
  readonly alive: boolean;
  /** How often each execution was started, over all lives. */
  runs(): Promise<ReadonlyMap<string, number>>;
  /** Every call of this life. @throws ProcessError */
  calls(): Promise<readonly RecordedCall[]>;
  /** As `dispatcher`'s; to die is SIGKILL, and the faults die with it. @throws ProcessError, TestingOptionError */
  fault(match: CallKind | CallMatch, fault: ProcessFault, options?: FaultOptions): Promise<void>;
  /** @throws ProcessError */
  heal(): Promise<void>;
  /** @throws ProcessError */
  refuse(): Promise<void>;
  /** Until it dies. @throws ProcessError */
  change(node: NodeOptions): Promise<void>;
  /** @throws ProcessError, also when nothing there holds such an execution, or will */
  finish(id: string, end?: RunEnd): Promise<void>;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
  /** Resolves when the process is gone, for whatever reason. */
  exited(): Promise<void>;
  /** A new process with the same port and journal, after killing the one before. @throws ProcessError */
  restart(options?: { journal?: "kept" | "lost" }): Promise<void>;
  /** {@link kill}, for good. Idempotent. */
  close(): Promise<void>;
}

/**
 * Starts a dispatcher in a process of its own, for tests that kill it. It ends with the process that started it.
 *
 * @throws ProcessError (`CELLKIT_TESTING_PROCESS`) when it does not start; the message has its reason; TestingOptionError
 *   (`CELLKIT_TESTING_OPTION`) when `journal` or `node` is wrong, or `run` a function, which no other process can take
 */
export async function dispatcherProcess(options: DispatcherProcessOptions): Promise<DispatcherProcess> {
  const run: unknown = options.run;
  if (typeof run === "function") {
    throw new TestingOptionError(
      "run",
      "is a function, which no other process can take; use dispatcher() for it",
    );
  }
  checkMembers("options", { journal: options.journal }, { journal: needed(text) });
  checkedNode(options.node ?? {});
  const started = new ForkedDispatcher(options);
  await started.restart();
  return started;
}

/** The last of what a process wrote that is kept for an error. */
const keptCharacters = 4_000;

class ForkedDispatcher implements DispatcherProcess {
  readonly #options: DispatcherProcessOptions;
  #child: ChildProcess | undefined;
  #port: number;
  #sequence = 0;
  #written = "";
  origin = "";

  constructor(options: DispatcherProcessOptions) {
    this.#options = options;
    this.#port = options.port ?? 0;
  }

  get pid(): number | undefined {
    return this.alive ? this.#child?.pid : undefined;
  }

  get alive(): boolean {
    return this.#child?.exitCode === null && this.#child.signalCode === null;
  }

  runs(): Promise<ReadonlyMap<string, number>> {
    return readRuns(this.#options.journal);
  }

  async calls(): Promise<readonly RecordedCall[]> {
    return (await this.#tell({ kind: "calls" })).calls;
  }

  async fault(match: CallKind | CallMatch, fault: ProcessFault, options: FaultOptions = {}): Promise<void> {
    await this.#tell({ kind: "fault", match, fault: checkedFault(match, fault, processFaults), options });
  }

  async heal(): Promise<void> {
    await this.#tell({ kind: "heal" });
  }

  async refuse(): Promise<void> {
    await this.#tell({ kind: "refuse" });
  }

  async change(node: NodeOptions): Promise<void> {
    await this.#tell({ kind: "change", node: checkedNode(node) });
  }

  async finish(id: string, end?: RunEnd): Promise<void> {
    await this.#tell({ kind: "finish", id, end });
  }

  async kill(): Promise<void> {
    this.#child?.kill("SIGKILL");
    await this.exited();
  }

  async exited(): Promise<void> {
    if (this.alive && this.#child !== undefined) await once(this.#child, "exit");
  }

  async restart({ journal = "kept" }: { journal?: "kept" | "lost" } = {}): Promise<void> {
    await this.kill();
    if (journal === "lost") {
      await rm(join(this.#options.journal, "execution-journal"), { recursive: true, force: true });
    }
    this.#child = await this.#fork();
    try {
      const options = { ...this.#options, port: this.#port };
      this.origin = (await this.#tell({ kind: "start", options })).origin;
      this.#port = Number(new URL(this.origin).port);
    } catch (error) {
      await this.kill();
      throw error;
    }
  }

  close(): Promise<void> {
    return this.kill();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @throws {@link ProcessError} */
  async #fork(): Promise<ChildProcess> {
    const isSource = import.meta.url.endsWith(".ts");
    const main = new URL(isSource ? "./dispatcher-main.ts" : "./dispatcher-main.js", import.meta.url);
    this.#written = "";
    let child: ChildProcess;
    try {
      child = fork(fileURLToPath(main), [], {
        execArgv: isSource ? ["--conditions=@cellkit/source"] : [],
        serialization: "advanced",
        stdio: ["ignore", "ignore", "pipe", "ipc"],
      });
      await once(child, "spawn");
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new ProcessError(`the dispatcher's process did not start: ${why}`, { cause });
    }
    // Of a message that did not arrive; whoever sent it hears of the process's end.
    child.on("error", (error) => {
      this.#written += `${error.message}\n`;
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#written = (this.#written + text).slice(-keptCharacters);
    });
    child.setMaxListeners(0);
    return child;
  }

  #tell(command: Command): Promise<Extract<Reply, { kind: "done" }>> {
    const child = this.#child;
    if (child === undefined || !this.alive)
      return Promise.reject(new ProcessError("the dispatcher is not running; restart() it"));
    const sequence = ++this.#sequence;
    return new Promise((resolve, reject) => {
      const settle = () => {
        child.off("message", onMessage);
        child.off("exit", onExit);
      };
      const onMessage = (reply: Reply) => {
        if (reply.sequence !== sequence) return;
        settle();
        if (reply.kind === "done") resolve(reply);
        else reject(new ProcessError(`the dispatcher could not ${command.kind}: ${reply.message}`));
      };
      const onExit = () => {
        settle();
        reject(
          new ProcessError(`the dispatcher ended before it did ${command.kind}: ${this.#written.trim()}`),
        );
      };
      child.on("message", onMessage);
      child.once("exit", onExit);
      child.send({ sequence, command }, (error) => {
        // Its end says why, if there is one.
        if (error !== null && child.exitCode === null && child.signalCode === null) onExit();
      });
    });
  }
}
