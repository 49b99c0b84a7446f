import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { type CallKind, routeOf } from "../core/call.ts";
import { answerInstead, type CallMatch, type Fault, garbage, withOtherId } from "../core/fault.ts";
import { checkedFault, checkedMatch, dispatcherFaults } from "../core/fault-table.ts";
import type { RunEnd } from "../core/run-end.ts";
import { checkedSteps, ScriptRun, type ScriptStep } from "../core/script.ts";
import { type Answer, refusal, renderAnswer } from "../core/wire-answer.ts";
import { ScriptError } from "../errors.ts";
import { until, type WaitOptions } from "../wait-until.ts";
import { maxBodyBytes } from "./admission.ts";
import { type BrokenCall, CallListener, type WireCall } from "./call-listener.ts";
import type { ScriptedDispatcher } from "./dispatcher.ts";
import { ExecutionBook } from "./execution-book.ts";
import { FaultList, type FaultOptions } from "./fault-list.ts";
import type { Identity } from "./hash.ts";
import type { Journal } from "./journal.ts";
import { checkedNode, type NodeOptions, type ResolvedNode, resolveNode } from "./node-figures.ts";
import type { ResolvedDispatcherOptions } from "./options.ts";
import { DispatcherRoutes } from "./routes.ts";
import { finishHeld, HeldExecutions, runFnOf } from "./running-execution.ts";
import { describeCall, type RecordedCall, submittedId } from "./transcript.ts";

/** A {@link ScriptedDispatcher} in this process. */
export class LocalDispatcher implements ScriptedDispatcher {
  readonly calls: RecordedCall[] = [];
  readonly #options: ResolvedDispatcherOptions;
  readonly #journal: Journal;
  readonly #identity: Identity;
  readonly #listener: CallListener;
  readonly #faults = new FaultList();
  readonly #held = new HeldExecutions();
  #node: ResolvedNode;
  #script: ScriptRun | undefined;
  #routes: DispatcherRoutes | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: ResolvedDispatcherOptions, journal: Journal, identity: Identity) {
    this.#options = options;
    this.#journal = journal;
    this.#identity = identity;
    this.#node = resolveNode(options.node);
    this.#listener = new CallListener(options.host, options.port, {
      wantsBody: ({ contentLength }) => contentLength <= maxBodyBytes,
      handle: (call) => void this.#handle(call),
      handleBroken: (call) => this.#handleBroken(call),
    });
  }

  get origin(): string {
    const { host, port } = this.#listener;
    return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  }

  get runs(): ReadonlyMap<string, number> {
    return this.#journal.runs;
  }

  get alive(): boolean {
    return this.#routes !== undefined;
  }

  script(steps: readonly ScriptStep[]): void {
    this.verify();
    this.#script = new ScriptRun(checkedSteps(steps));
  }

  verify(): void {
    const script = this.#script;
    this.#script = undefined;
    if (script !== undefined) this.#hold(script, script.problem);
  }

  async followed(options?: WaitOptions): Promise<void> {
    await until(
      "the end of the script",
      () => {
        const state = this.#script?.state ?? { kind: "finished" };
        if (state.kind === "failed") this.verify();
        return state.kind === "finished";
      },
      options,
    );
  }

  fault(match: CallKind | CallMatch, fault: Fault, options?: FaultOptions): void {
    this.#faults.add(match, checkedFault(match, fault, dispatcherFaults), options);
  }

  async heal(): Promise<void> {
    this.#faults.clear();
    if (this.alive && !this.#listener.listening) await this.#listener.listen();
  }

  async received(
    match: CallKind | CallMatch,
    { count = 1, ...options }: WaitOptions & { count?: number } = {},
  ): Promise<RecordedCall> {
    const { call, id } = checkedMatch(match);
    const isMeant = (each: RecordedCall) => each.call === call && (id === undefined || each.id === id);
    return until(`${count} × ${call}`, () => this.calls.filter(isMeant)[count - 1], options);
  }

  finish(id: string, end?: RunEnd, options?: WaitOptions): Promise<void> {
    const stateOf = () => this.#routes?.book.stateOf(id);
    return finishHeld({ held: this.#held, run: this.#options.run, stateOf }, id, end, options);
  }

  change(node: NodeOptions): void {
    this.#node = { ...this.#node, ...checkedNode(node) };
  }

  refuse(): Promise<void> {
    return this.#listener.refuse();
  }

  async kill(): Promise<void> {
    const written = this.#routes?.book.kill();
    this.#routes = undefined;
    await this.#listener.refuse();
    this.#listener.cut();
    await written;
  }

  async restart({ journal = "kept" }: { journal?: "kept" | "lost" } = {}): Promise<void> {
    await this.kill();
    if (journal === "lost") await this.#journal.lose();
    const node = () => this.#node;
    const book = await ExecutionBook.open({
      journal: this.#journal,
      identity: this.#identity,
      run: runFnOf(this.#options.run, this.#held),
      node,
    });
    const processEpoch = this.#identity(randomUUID());
    const { token, prewarm } = this.#options;
    this.#routes = new DispatcherRoutes({
      book,
      node,
      token,
      prewarm,
      processEpoch,
      identity: this.#identity,
    });
    try {
      await this.#listener.listen();
    } catch (error) {
      await this.kill();
      throw error;
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await this.kill();
    await this.#journal.close();
    this.verify();
  }

  /** @throws {@link ScriptError} */
  #hold({ state }: ScriptRun, problem: string | undefined): void {
    if (problem === undefined) return;
    const calls = this.calls.map((call) => `  ${describeCall(call)}`).slice(-20);
    const step = state.kind === "finished" ? 0 : state.step;
    throw new ScriptError(step, `${problem}\nthe last calls of ${this.origin}:\n${calls.join("\n")}`);
  }

  async #handle({ head, body, socket }: WireCall): Promise<void> {
    const route = routeOf(head.method, head.path);
    const id = route.id ?? (route.kind === "submit" ? submittedId(body) : undefined);
    const call = this.#record(route.kind, id, head, body);
    const taken = this.#script?.take({ call: route.kind, id, body: body.toString("utf8") });
    if (taken?.kind === "deviation") return void socket.resetAndDestroy();
    const step = taken?.kind === "step" ? taken.step : undefined;
    const fault = step?.fault ?? this.#faults.take(call);
    const answered = step?.answer ?? answerInstead(fault);
    const when = fault !== undefined && "when" in fault ? fault.when : undefined;
    if (fault?.kind === "black-hole") return;
    if (when === "before-accept") return this.#strike(fault, socket);
    const routes = this.#routes;
    const answer =
      answered ?? (await routes?.answer(route, head, body, fault?.kind !== "worker-unavailable"));
    // It died while it answered.
    if (answer === undefined || routes !== this.#routes) return void socket.destroy();
    if (fault?.kind === "swallow") return;
    if (when === "after-accept") return this.#strike(fault, socket);
    if (fault?.kind === "late") await pause(fault.delayMs, undefined, { ref: false });
    if (fault?.kind === "held") await fault.until;
    if (socket.destroyed) return;
    call.status = answer.status;
    CallListener.answer(socket, bytesOf(answer, fault), () => {
      if (when === "after-answer") this.#strike(fault, socket);
    });
  }

  /** What is no whole request is in the transcript, and no script expects it, unless a step says `other`. */
  #handleBroken({ kind, head, bytes, socket }: BrokenCall): void {
    const call = this.#record("other", undefined, head, bytes);
    const taken = this.#script?.take({ call: "other", id: undefined, body: bytes.toString("utf8") });
    if (taken?.kind === "deviation") return void socket.resetAndDestroy();
    if (kind !== "malformed") return void socket.destroy();
    call.status = 400;
    CallListener.answer(socket, renderAnswer(refusal(call.status, "malformed request line")));
  }

  #record(
    call: CallKind,
    id: string | undefined,
    { method, path, fields }: Pick<WireCall["head"], "method" | "path" | "fields"> = noHead,
    body: Buffer,
  ): RecordedCall {
    const index = this.calls.length;
    const recorded: RecordedCall = { index, call, id, method, path, fields, body, status: undefined };
    this.calls.push(recorded);
    return recorded;
  }

  #strike(fault: Fault | undefined, socket: WireCall["socket"]): void {
    if (fault?.kind === "reset") return void socket.resetAndDestroy();
    if (this.#options.onDeath === undefined) void this.kill();
    else this.#options.onDeath();
  }
}

const noHead = { method: "", path: "", fields: [] };

/** What is written for an answer. */
function bytesOf(answer: Answer, fault: Fault | undefined): Uint8Array {
  switch (fault?.kind) {
    case "other-id":
      return renderAnswer(withOtherId(answer, fault.id));
    case "wrong-length":
      return renderAnswer(answer, fault.differenceBytes);
    case "cut":
      return renderAnswer(answer).subarray(0, fault.afterBytes);
    case "garbage":
      return fault.bytes === undefined ? garbage : Buffer.from(fault.bytes);
    default:
      return renderAnswer(answer);
  }
}
