import type { RequestHandler } from "msw";
import type { CallKind } from "../core/call.ts";
import { answerInstead, atCapacity, type CallMatch, withOtherId } from "../core/fault.ts";
import { checkedFault } from "../core/fault-table.ts";
import { decideCall, type RouterCall } from "../core/router-rules.ts";
import type { RunEnd } from "../core/run-end.ts";
import { type Answer, refusal } from "../core/wire-answer.ts";
import { FaultList, type FaultOptions } from "../dispatcher/fault-list.ts";
import type { Identity } from "../dispatcher/hash.ts";
import { finishHeld, HeldExecutions, runFnOf } from "../dispatcher/running-execution.ts";
import type { WaitOptions } from "../wait-until.ts";
import type { BackendOptions } from "./mocked-backend.ts";
import { MockedBackend } from "./mocked-backend.ts";
import { type RouterFault, routerFaults } from "./router-fault.ts";
import type { ResolvedRouterHandlerOptions } from "./router-handlers.ts";

/** One call, as a mocked router got it. */
export interface MockedCall {
  readonly call: CallKind;
  readonly id: string | undefined;
  readonly method: string;
  readonly path: string;
  readonly body: Uint8Array;
  /** The status that was answered; undefined while there is none, and when there never will be. */
  status: number | undefined;
}

/** A router without a network, and the msw handlers that ask it. */
export interface RouterHandlers {
  /** For msw: `setupServer(...handlers)`, or `mockedNetwork(handlers)` when the client is undici. */
  readonly handlers: readonly RequestHandler[];
  readonly calls: readonly MockedCall[];
  /** How often each execution was started. */
  readonly runs: ReadonlyMap<string, number>;
  /** The origins of the backends, for pins. */
  readonly origins: readonly string[];
  /**
   * Something goes wrong with the next call of this kind, or the next few.
   *
   * @throws TestingOptionError (`CELLKIT_TESTING_OPTION`) for calls that no router serves, faults that there are not, and such as make no
   *   sense for the call
   */
  fault(match: CallKind | CallMatch, fault: RouterFault, options?: FaultOptions): void;
  /**
   * Ends an execution that is held, as soon as it is: the answer to its submission may come a moment earlier.
   *
   * @throws TestingOptionError (`CELLKIT_TESTING_OPTION`), at once, when nothing holds it and nothing will; WaitTimeoutError
   */
  finish(id: string, end?: RunEnd, options?: WaitOptions): Promise<void>;
  /** Changes a backend. @param index its place in the list @throws TestingOptionError (`CELLKIT_TESTING_OPTION`) */
  change(index: number, backend: BackendOptions): void;
  /** A backend loses what it knew. @param index its place in the list */
  forget(index: number): Promise<void>;
}

const lost = refusal(503, "recorded owner unavailable or outcome lost; no reroute or replay");
const unreadable = refusal(503, "execution ownership unavailable");
const unavailable = refusal(503, "ownership unavailable; retry same request without changing id");
const outcomeUnknown = refusal(503, "submission outcome unknown; owner retained; POST will not be replayed");

/** An id's owner, and what it was bound to. */
interface Claim {
  readonly owner: MockedBackend;
  readonly requestHash: string;
}

export class MockedRouter {
  readonly calls: MockedCall[] = [];
  readonly #faults = new FaultList<RouterFault>();
  readonly #options: ResolvedRouterHandlerOptions;
  readonly #backends: readonly MockedBackend[];
  readonly #claims = new Map<string, Claim>();
  readonly #held = new HeldExecutions();
  readonly #identity: () => Promise<Identity>;

  constructor(options: ResolvedRouterHandlerOptions, identity: () => Promise<Identity>) {
    this.#options = options;
    this.#identity = identity;
    const run = runFnOf(options.run, this.#held);
    this.#backends = options.backends.map(
      (backend, index) => new MockedBackend(backend.origin ?? `http://node-${index}.test:8787`, backend, run),
    );
  }

  get origins(): string[] {
    return this.#backends.map(({ origin }) => origin);
  }

  get runs(): ReadonlyMap<string, number> {
    const all = new Map<string, number>();
    for (const { journal } of this.#backends) {
      for (const [id, count] of journal.runs) all.set(id, (all.get(id) ?? 0) + count);
    }
    return all;
  }

  fault(match: CallKind | CallMatch, fault: RouterFault, options?: FaultOptions): void {
    this.#faults.add(match, checkedFault(match, fault, routerFaults), options);
  }

  backend(index: number): MockedBackend | undefined {
    return this.#backends[index];
  }

  finish(id: string, end?: RunEnd, options?: WaitOptions): Promise<void> {
    const stateOf = () => this.#claims.get(id)?.owner.stateOf(id);
    return finishHeld({ held: this.#held, run: this.#options.run, stateOf }, id, end, options);
  }

  /**
   * Serves a call. @returns undefined when nothing is to be answered, `reset` when the connection breaks
   */
  async serve(call: RouterCall): Promise<Answer | "reset" | undefined> {
    const { token: clientToken, capabilityToken } = this.#options;
    const decision = decideCall(call, { clientToken, capabilityToken, origins: this.origins });
    const { method, path, body } = call;
    const [kind, id] = decision.kind === "serve" ? [decision.call, decision.id] : (["other", ""] as const);
    const recorded: MockedCall = {
      call: kind,
      id: id === "" ? undefined : id,
      method,
      path,
      body,
      status: undefined,
    };
    this.calls.push(recorded);
    const answer =
      decision.kind === "answer"
        ? decision.answer
        : await this.#faulty(recorded, call, this.#faults.take(recorded));
    if (typeof answer === "object") recorded.status = answer.status;
    return answer;
  }

  async #faulty(recorded: MockedCall, call: RouterCall, fault: RouterFault | undefined) {
    switch (fault?.kind) {
      case undefined:
        return this.#answer(recorded, call);
      case "black-hole":
        return undefined;
      case "reset":
        if (fault.when === "after-accept") await this.#answer(recorded, call);
        return "reset";
      case "outcome-unknown":
        if (fault.ran) await this.#answer(recorded, call);
        return fault.ran ? outcomeUnknown : this.#claimOnly(recorded.id, call, outcomeUnknown);
      case "ownership-unavailable":
        return recorded.call === "submit" ? unavailable : unreadable;
      case "owner-lost":
        return lost;
      case "answer":
        return answerInstead(fault);
      case "at-capacity":
        return this.#claimOnly(recorded.id, call, atCapacity);
      case "other-id":
        return withOtherId(await this.#answer(recorded, call), fault.id);
      case "late":
      case "held": {
        const answer = await this.#answer(recorded, call);
        await (fault.kind === "held"
          ? fault.until
          : new Promise((resolve) => setTimeout(resolve, fault.delayMs)));
        return answer;
      }
    }
  }

  async #answer({ call: kind, id = "" }: MockedCall, call: RouterCall): Promise<Answer> {
    if (kind === "capabilities") return this.#capabilities();
    if (kind === "submit") return this.#submit(id, call);
    if (kind === "prewarm") {
      const backend = this.#backends.find(({ origin }) => origin === call.pin);
      const answer = await backend?.answer("prewarm", "", call.body);
      return answer ?? refusal(503, "pinned prewarm unavailable; no fallback");
    }
    const owner = this.#claims.get(id)?.owner;
    return owner === undefined ? refusal(404, "unknown execution") : this.#ask(owner, kind, id);
  }

  /** The id is used up, and nothing is there to run it; or it cannot be bound, as of any submission. */
  async #claimOnly(id = "", call: RouterCall, answer: Answer): Promise<Answer> {
    const claimed = await this.#claim(id, call);
    return claimed.kind === "answer" ? claimed.answer : answer;
  }

  async #submit(id: string, call: RouterCall): Promise<Answer> {
    const claimed = await this.#claim(id, call);
    if (claimed.kind === "answer") return claimed.answer;
    if (claimed.kind === "known") return this.#ask(claimed.owner, "read", id);
    return (await claimed.owner.answer("submit", id, call.body)) ?? outcomeUnknown;
  }

  /** Binds an id to a backend and to these bytes, or says what it is bound to. */
  async #claim(
    id: string,
    { body, pin }: RouterCall,
  ): Promise<{ kind: "answer"; answer: Answer } | { kind: "known" | "new"; owner: MockedBackend }> {
    const requestHash = (await this.#identity())(body);
    const owner = await this.#choose(pin);
    // From here to the end nothing waits, so two calls cannot bind the same id.
    const known = this.#claims.get(id);
    if (known === undefined) {
      if (owner === undefined) return { kind: "answer", answer: unavailable };
      this.#claims.set(id, { owner, requestHash });
      return { kind: "new", owner };
    }
    if (known.requestHash !== requestHash) {
      return { kind: "answer", answer: refusal(409, "execution id already binds different request bytes") };
    }
    if (pin !== undefined && pin !== known.owner.origin) {
      return {
        kind: "answer",
        answer: refusal(409, "execution already binds a different backend; no reroute"),
      };
    }
    return { kind: "known", owner: known.owner };
  }

  /** The pinned backend, or the first that is healthy. */
  async #choose(pin: string | undefined): Promise<MockedBackend | undefined> {
    for (const backend of this.#backends) {
      if (pin === undefined ? await backend.isHealthy() : backend.origin === pin) return backend;
    }
    return undefined;
  }

  async #ask(owner: MockedBackend, kind: CallKind, id: string): Promise<Answer> {
    const answer = await owner.answer(kind, id, new Uint8Array());
    return answer === undefined || answer.status === 404 ? lost : answer;
  }

  async #capabilities(): Promise<Answer> {
    const nodes = await Promise.all(this.#backends.map((backend, index) => backend.capability(index)));
    const body = {
      apiVersion: "celln.dev/capabilities-v1alpha1",
      preflightOnly: true,
      eligibleNodes: nodes.filter(({ preflightEligible }) => preflightEligible === true).length,
      artifactReadiness: "not_checked",
      parentRouting: false,
      nodes,
    };
    return { status: 200, body };
  }
}
