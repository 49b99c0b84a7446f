// A dispatcher behind a mocked router: its book and its report, without a wire.
import { isEligible } from "@cellkit/execution";
import type { CallKind } from "../core/call.ts";
import { flag, text } from "../core/given.ts";
import type { Answer } from "../core/wire-answer.ts";
import { type EntryState, ExecutionBook } from "../dispatcher/execution-book.ts";
import { createIdentity } from "../dispatcher/hash.ts";
import { MemoryJournal } from "../dispatcher/journal.ts";
import {
  checkedNode,
  type NodeOptions,
  type ResolvedNode,
  reportOf,
  resolveNode,
} from "../dispatcher/node-figures.ts";
import { DispatcherRoutes } from "../dispatcher/routes.ts";
import type { RunFn } from "../dispatcher/running-execution.ts";
import { TestingOptionError } from "../errors.ts";

/** What a mocked backend is; every member can be changed while it runs. */
export interface BackendOptions extends NodeOptions {
  /** Its place in pins; it cannot be changed. @default `http://node-0.test:8787` and so on */
  readonly origin?: string;
  /** False: the router cannot reach it. @default true */
  readonly reachable?: boolean;
}

export class MockedBackend {
  readonly origin: string;
  readonly journal = new MemoryJournal();
  #node: ResolvedNode;
  #isReachable: boolean;
  readonly #run: RunFn;
  #routes: Promise<DispatcherRoutes> | undefined;

  /** @throws TestingOptionError (`CELLKIT_TESTING_OPTION`) */
  constructor(origin: string, options: BackendOptions, run: RunFn) {
    const { reachable = true, origin: _, ...node } = checkedBackend(options);
    this.origin = origin;
    this.#node = resolveNode(node);
    this.#isReachable = reachable;
    this.#run = run;
  }

  /** @throws TestingOptionError (`CELLKIT_TESTING_OPTION`) */
  change(options: BackendOptions): void {
    const { reachable = this.#isReachable, origin = this.origin, ...node } = checkedBackend(options);
    if (origin !== this.origin) throw new TestingOptionError("node.origin", "cannot be changed");
    this.#isReachable = reachable;
    this.#node = { ...this.#node, ...node };
  }

  /** What it answers a router; undefined when it cannot be reached. */
  async answer(call: CallKind, id: string, body: Uint8Array): Promise<Answer | undefined> {
    if (!this.#isReachable) return undefined;
    const head = { method: "", path: "", fields: [], contentLength: body.length, authorization };
    return (await this.#open()).answer({ kind: call, id }, head, body);
  }

  /** Where an execution is; undefined when it is not here. */
  async stateOf(id: string): Promise<EntryState | undefined> {
    return (await this.#routes)?.book.stateOf(id);
  }

  /** Its entry in a router's capability answer. */
  async capability(index: number): Promise<Record<string, unknown>> {
    const reason = "unreachable_unauthorized_or_incompatible";
    if (!this.#isReachable) return { index, preflightEligible: false, reason };
    const report = reportOf(this.#node, (await this.#open()).book.reserved);
    return { index, preflightEligible: isEligible(report.node), report };
  }

  /** Whether a router would give it new work. */
  async isHealthy(): Promise<boolean> {
    return (await this.capability(0))["preflightEligible"] === true;
  }

  /** All that ran is gone, as after a restart with an empty disk. */
  async forget(): Promise<void> {
    const routes = await this.#routes;
    this.#routes = undefined;
    await routes?.book.kill();
    await this.journal.lose();
  }

  #open(): Promise<DispatcherRoutes> {
    this.#routes ??= this.#start();
    return this.#routes;
  }

  async #start(): Promise<DispatcherRoutes> {
    const identity = await createIdentity();
    const node = () => this.#node;
    const book = await ExecutionBook.open({ journal: this.journal, identity, run: this.#run, node });
    const processEpoch = identity(crypto.randomUUID());
    return new DispatcherRoutes({
      book,
      node,
      token: () => token,
      prewarm: () => null,
      processEpoch,
      identity,
    });
  }
}

function checkedBackend(options: BackendOptions): BackendOptions {
  return checkedNode(options, { origin: text, reachable: flag });
}

/** Between the mocked router and its backends; nobody else can present it. */
const token = `backend-token-${crypto.randomUUID()}`;
const authorization = `Bearer ${token}`;
