// The plane that is tried: executions that are submitted as a controller does, dispatchers that are asked past the routers, and the
// operator's commands. Everything that happens here is kept as evidence.
import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  ExecutionError,
  type ExecutionRequestInput,
  executionId,
  type RouterClient,
  readTokenFile,
  type Submission,
  stringifyJson,
  type TerminalRecord,
} from "@cellkit/execution";
import { type BackendLook, lookAtBackend, readAtBackend } from "@cellkit/router";
import { HookError, QualificationInputError } from "../errors.ts";
import type { RouterAccess } from "../router-access.ts";
import type { ExecutionEvidence, HookEvidence, NodeEvidence } from "./evidence.ts";

/** The operator's commands: each makes something happen, and returns when it has. */
export type HookName =
  | "kill-replica"
  | "start-replica"
  | "kill-node"
  | "start-node"
  | "lose-answers"
  | "restore-answers"
  | "rotate"
  | "upgrade"
  | "rollback";

/** Runs a hook; `backend` is the origin of the dispatcher that is meant. */
export type HookFn = (backend: string) => Promise<void>;

/** What is tried. */
export interface PlaneOptions {
  readonly client: RouterClient;
  /** What the client was made with, to look at the router itself. */
  readonly router: Omit<RouterAccess, "signal"> & { readonly url: string; readonly tokenFile: string };
  /** At least two. */
  readonly backends: readonly string[];
  readonly backendTokenFile: string;
  /** The discovery token, to see whether it is rotated. @default it is not looked at */
  readonly capabilityTokenFile?: string | undefined;
  /** A request that ends well by itself and soon; its id is replaced. */
  readonly request: ExecutionRequestInput;
  /** A request that goes on until it is ended, for a minute at least. */
  readonly longRequest: ExecutionRequestInput | undefined;
  readonly hooks: Readonly<Partial<Record<HookName, HookFn>>>;
  /** What hooks are for a shell, to be kept. @default it is not */
  readonly commands?: Readonly<Partial<Record<HookName, string>>>;
  /** How long things may take to be as they should after a hook. @default 120_000 */
  readonly settleMs: number;
  /** How long a submission is tried whose answers are lost. @default 15_000 */
  readonly ambiguousMs: number;
  /** What a long request is allowed where it is to run out of time. @default 5_000 */
  readonly shortTimeoutMs: number;
  readonly signal: AbortSignal;
  /** Hears what an operator has to know whatever becomes of the check, in a line for people. */
  readonly onNote: (line: string) => void;
}

/** The tokens in the files at a moment; those of a role that has no file are undefined. */
type PlaneTokens = Readonly<Record<"client" | "backend", string>> & {
  readonly capability: string | undefined;
};

/** How often it is looked whether something has happened. */
const lookMs = 250;

/** A plane, and the evidence of all that was done to it. */
export class PlaneUnderTest {
  readonly options: PlaneOptions;
  readonly executions: ExecutionEvidence[] = [];
  readonly hooks: HookEvidence[] = [];
  readonly nodes: NodeEvidence[] = [];
  /** By origin. */
  versionsBeforeUpgrade: ReadonlyMap<string, string> | undefined;
  readonly #nonce = randomBytes(6).toString("hex");
  #count = 0;

  constructor(options: PlaneOptions) {
    this.options = options;
  }

  /** The dispatcher that hooks are done to. */
  get victim(): string {
    return this.options.backends[0] ?? "";
  }

  /** A submission that was not sent yet. */
  prepare(
    check: string,
    { long = false, pin, timeoutMs }: { long?: boolean; pin?: string; timeoutMs?: number } = {},
  ): Submission {
    const { client, request, longRequest = request } = this.options;
    const template = long ? longRequest : request;
    const id = executionId("cellkit-qualify", this.#nonce, check, String(++this.#count));
    const { capabilities } = template;
    const submission = client.prepare(
      {
        ...template,
        id,
        capabilities: { ...capabilities, timeoutMs: timeoutMs ?? capabilities.timeoutMs },
      },
      { pin },
    );
    this.executions.push({
      id,
      check,
      requestSha256: createHash("sha256").update(submission.bytes).digest("hex"),
      submittedAt: new Date().toISOString(),
      holders: [],
    });
    return submission;
  }

  /** Sends it and waits for its end. */
  async finish(submission: Submission): Promise<TerminalRecord> {
    const { signal } = this.options;
    await submission.send({ signal });
    return this.ended(submission);
  }

  /** Waits for the end of one that was sent. */
  async ended(submission: Submission): Promise<TerminalRecord> {
    const record = await submission.result({ signal: this.options.signal });
    this.keep(record);
    return record;
  }

  /** Keeps how an execution ended. */
  keep(record: TerminalRecord): void {
    const evidence = this.executions.find(({ id }) => id === record.requestId);
    const { phase, receipt } = record;
    if (evidence === undefined) return;
    Object.assign(evidence, {
      phase,
      node: receipt?.node,
      outputHash: receipt?.output?.hash,
      startedAt: receipt?.startedAt,
      completedAt: receipt?.completedAt,
    });
  }

  /** The node that ran it, where no dispatcher that was given has told its name. */
  strangerOf({ receipt }: TerminalRecord): string | undefined {
    const isKnown = this.nodes.some(({ names }) => receipt !== undefined && names.includes(receipt.node));
    return isKnown ? undefined : receipt?.node;
  }

  /** The dispatchers that have an execution, and those that could not be asked. */
  async holders(id: string): Promise<{ having: readonly string[]; silent: readonly string[] }> {
    const token = Buffer.from((await this.tokens()).backend);
    const found = await Promise.all(
      this.options.backends.map(async (origin) => ({
        origin,
        its: await readAtBackend({ origin, id, token }, this.options.signal),
      })),
    );
    this.options.signal.throwIfAborted();
    const having = found.flatMap(({ origin, its }) =>
      its.kind === "record" || its.kind === "interrupted" ? [origin] : [],
    );
    const evidence = this.executions.find((each) => each.id === id);
    if (evidence !== undefined) evidence.holders = [...new Set([...evidence.holders, ...having])].sort();
    return { having, silent: found.flatMap(({ origin, its }) => (its.kind === "unknown" ? [origin] : [])) };
  }

  /** Looks at a dispatcher, and keeps what it says of itself. */
  async look(origin: string): Promise<BackendLook> {
    const token = Buffer.from((await this.tokens()).backend);
    const look = await lookAtBackend(origin, token, { signal: this.options.signal });
    this.options.signal.throwIfAborted();
    const { nodes, binaryVersion, healthy } = look;
    const names = [...new Set(nodes.map(({ node_name }) => node_name))];
    this.nodes.push({ origin, at: new Date().toISOString(), names, binaryVersion, healthy });
    return look;
  }

  /** Runs a hook, and keeps when, and how it ended. */
  async hook(name: HookName): Promise<void> {
    await this.#run(name);
    this.options.signal.throwIfAborted();
  }

  async #run(name: HookName): Promise<void> {
    const startedAt = new Date().toISOString();
    const { hooks, commands } = this.options;
    let end = "code 0";
    try {
      await hooks[name]?.(this.victim);
    } catch (error) {
      end = error instanceof HookError ? error.end : messageOf(error);
      throw error;
    } finally {
      const endedAt = new Date().toISOString();
      this.hooks.push({ hook: name, command: commands?.[name], end, startedAt, endedAt });
    }
  }

  /**
   * Does something, and whatever becomes of it, runs the hook that restores the plane. When both fail, both are told: by the error, and where
   * that is a signal's reason, of which nobody reads anything, by a note.
   */
  async restoring<T>(name: HookName, run: () => Promise<T>): Promise<T> {
    let value: T;
    try {
      value = await run();
    } catch (cause) {
      const failure = await this.#run(name).then(
        () => undefined,
        (error: unknown) => ({ error }),
      );
      throw failure === undefined ? cause : this.#bothOf(cause, failure.error, name);
    }
    await this.hook(name);
    return value;
  }

  /** What to throw when a check failed and the plane was not restored. */
  #bothOf(cause: unknown, error: unknown, name: HookName): unknown {
    this.options.onNote(`the plane is not as it was, --${name} failed: ${messageOf(error)}`);
    if (this.options.signal.aborted) return cause;
    if (error instanceof HookError && (cause instanceof HookError || cause instanceof ExecutionError))
      return new HookError(error.hook, error.end, { cause });
    return new AggregateError([cause, error], `${messageOf(cause)}; then ${messageOf(error)}`);
  }

  /** Whether a condition comes true in time. */
  async comes(condition: () => Promise<boolean>, boundMs = this.options.settleMs): Promise<boolean> {
    const deadlineMs = performance.now() + boundMs;
    for (;;) {
      this.options.signal.throwIfAborted();
      if (await condition()) return true;
      if (performance.now() > deadlineMs) return false;
      await sleep(lookMs, undefined, { signal: this.options.signal });
    }
  }

  /** The tokens as their files have them now. @throws QualificationInputError (`CELLKIT_CLI_QUALIFICATION_INPUT`) */
  async tokens(): Promise<PlaneTokens> {
    const { router, backendTokenFile, capabilityTokenFile } = this.options;
    return {
      client: await tokenIn(router.tokenFile),
      backend: await tokenIn(backendTokenFile),
      capability: capabilityTokenFile === undefined ? undefined : await tokenIn(capabilityTokenFile),
    };
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function tokenIn(file: string): Promise<string> {
  const read = await readTokenFile(file);
  if (read.kind === "token") return read.token;
  throw new QualificationInputError(`${file} ${read.problem}`);
}

/** Whether two records say the same. */
export function isSameRecord(one: unknown, other: unknown): boolean {
  return stringifyJson(one) === stringifyJson(other);
}
