/** The other side of an agent: a process of this machine, or one of a peer. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { LedgerAgentError } from "../errors.ts";
import {
  type AgentAnswer,
  type AgentRequest,
  answerSchemas,
  MAX_LINE_BYTES,
  replySchema,
} from "./agent-protocol.ts";
import { jsonOf, onLines } from "./lines.ts";

/** How long an agent may take to answer. The longest request waits for a lock and watches for 10 s. */
const ANSWER_MS = 30_000;

/** What may be done to an agent's process. */
export type AgentSignal = "kill" | "freeze" | "thaw";

/** How lines reach an agent's process and come back. */
export interface AgentLink {
  send(line: string): void;
  signal(what: AgentSignal): void;
  /** Ends the process and resolves when it is gone. */
  close(): Promise<void>;
}

/** What a link tells. */
export interface LinkEvents {
  onLine(line: string): void;
  /** The process is gone, or cannot be reached any more. */
  onEnd(reason: string): void;
}

/** A machine on which agents can be started. */
export interface AgentPlace {
  /** `this machine`, or HOST:PORT. */
  readonly name: string;
  start(events: LinkEvents, signal?: AbortSignal): Promise<AgentLink>;
}

/** The program of an agent. */
export interface AgentCommand {
  command: string;
  args: readonly string[];
  env?: NodeJS.ProcessEnv;
}

/** This machine: agents are processes of it, which speak over their standard input and output and end with them. */
export function localPlace({ command, args, env = process.env }: AgentCommand): AgentPlace {
  return {
    name: "this machine",
    start: async ({ onLine, onEnd }) => {
      const child: ChildProcessWithoutNullStreams = spawn(command, args, { env, stdio: "pipe" });
      let lastWords = "";
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        lastWords = (lastWords + text).slice(-2_000);
      });
      child.stdin.on("error", () => undefined);
      let endGuard: (() => void) | undefined;
      const gone = new Promise<void>((resolve) => {
        child.once("error", (error) => {
          onEnd(`it did not start: ${error.message}`);
          resolve();
        });
        child.once("close", (code, signal) => {
          endGuard?.();
          onEnd(
            `it ended with ${signal ?? `code ${code}`}${lastWords === "" ? "" : `: ${lastWords.trim()}`}`,
          );
          resolve();
        });
      });
      onLines(child.stdout, onLine, () => child.kill("SIGKILL"));
      return {
        send: (line) => void child.stdin.write(`${line}\n`),
        signal: (what) => {
          if (what === "freeze" && child.pid !== undefined) endGuard ??= guardFrozen(child.pid);
          child.kill(signals[what]);
        },
        close: async () => {
          child.kill("SIGKILL");
          await gone;
        },
      };
    },
  };
}

/**
 * A frozen process does not see that its input has ended, and would stay for ever if this one were killed. So a shell waits for that
 * end in its place, and kills it. Answers how to end the shell.
 */
function guardFrozen(pid: number): () => void {
  const script = 'trap "" HUP INT TERM; read -r line; kill -KILL "$1"';
  const guard = spawn("/bin/sh", ["-c", script, "sh", String(pid)], { stdio: ["pipe", "ignore", "ignore"] });
  // Without a shell there is no guard, and nothing else is lost.
  guard.on("error", () => undefined);
  guard.stdin.on("error", () => undefined);
  return () => void guard.kill("SIGKILL");
}

/** The signals behind the words. */
const signals = { kill: "SIGKILL", freeze: "SIGSTOP", thaw: "SIGCONT" } as const satisfies Record<
  AgentSignal,
  NodeJS.Signals
>;

interface Waiting {
  op: AgentRequest["op"];
  resolve(answer: unknown): void;
  reject(error: Error): void;
  timer: NodeJS.Timeout;
}

/** One agent that runs. */
export class Agent {
  readonly name: string;
  /** The owner that it names in its claims. */
  readonly owner: string;
  /** The machine it runs on. */
  readonly place: AgentPlace;
  /** Every id that it said to be claimed while it was claiming on, also when it is dead now. */
  readonly acknowledged: string[] = [];
  readonly #waiting = new Map<number, Waiting>();
  #link: AgentLink | undefined;
  #lastId = 0;
  #ended: string | undefined;

  private constructor(place: AgentPlace, number: number) {
    this.place = place;
    this.name = `agent ${number} (${place.name})`;
    this.owner = `http://agent-${number}.invalid:1`;
  }

  /** @throws LedgerAgentError (CELLKIT_LEDGER_AGENT) */
  static async start(place: AgentPlace, number: number, signal?: AbortSignal): Promise<Agent> {
    const agent = new Agent(place, number);
    agent.#link = await place.start(
      { onLine: (line) => agent.#take(line), onEnd: (reason) => agent.#end(reason) },
      signal,
    );
    return agent;
  }

  get isAlive(): boolean {
    return this.#ended === undefined;
  }

  /** @throws LedgerAgentError with the agent's own words, also when it ends first or does not answer */
  async ask<K extends AgentRequest["op"]>(
    op: K,
    ...[members]: object extends Members<K> ? [] : [Members<K>]
  ): Promise<AgentAnswer<K>> {
    if (this.#ended !== undefined) throw new LedgerAgentError(this.name, this.#ended);
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const timer = setTimeout(() => {
      this.#waiting.delete(id);
      reject(new LedgerAgentError(this.name, `it did not answer to ${op} within ${ANSWER_MS / 1_000} s`));
    }, ANSWER_MS);
    this.#waiting.set(id, { op, resolve, reject, timer });
    const line = JSON.stringify({ id, op, ...members });
    if (line.length > MAX_LINE_BYTES) throw new LedgerAgentError(this.name, `${op} is too long to send`);
    this.#link?.send(line);
    return answerSchemas[op].parse(await promise) as AgentAnswer<K>;
  }

  signal(what: AgentSignal): void {
    this.#link?.signal(what);
  }

  /** Kills the process, if it is still there, and waits for its end. */
  async close(): Promise<void> {
    await this.#link?.close();
  }

  #take(line: string): void {
    const parsed = replySchema.safeParse(jsonOf(line));
    if (!parsed.success) {
      this.#end("it does not speak as an agent does");
      return;
    }
    const reply = parsed.data;
    if ("acknowledged" in reply) {
      this.acknowledged.push(reply.acknowledged);
      return;
    }
    const waiting = this.#waiting.get(reply.id);
    if (waiting === undefined) return;
    this.#waiting.delete(reply.id);
    clearTimeout(waiting.timer);
    if ("error" in reply)
      waiting.reject(
        new LedgerAgentError(this.name, `${waiting.op}: ${reply.error.message} (${reply.error.code})`),
      );
    else waiting.resolve(reply.ok);
  }

  #end(reason: string): void {
    this.#ended ??= reason;
    for (const { reject, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      reject(new LedgerAgentError(this.name, reason));
    }
    this.#waiting.clear();
  }
}

/** What a request has beside its `op`. */
type Members<K extends AgentRequest["op"]> = Omit<Extract<AgentRequest, { op: K }>, "op">;
