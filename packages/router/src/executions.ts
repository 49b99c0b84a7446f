// The calls about executions: claims before any POST, one POST for each new id, and owners that are never replaced.
import { type Claim, type Ledger, LedgerError, type Owner } from "@cellkit/ledger";
import type { Dispatchers, Lane } from "./backend/dispatchers.ts";
import { HeldTurn } from "./backend/origin-turns.ts";
import type { Refusal } from "./core/answer.ts";
import { type Call, decideOwner, decideOwnerAnswer, decideSubmission } from "./core/decide.ts";
import { requestIdOf } from "./core/request-id.ts";
import { BackendError, NoBackendError, PlacementError } from "./errors.ts";
import { choose, type Placement } from "./placement.ts";
import type { RouterListener } from "./router-event.ts";
import type { Place } from "./server/running-limit.ts";
import { untilAborted } from "./until-aborted.ts";

/** What goes back to the caller: a dispatcher's bytes as they came, or an answer of the router's own. */
export interface Reply {
  readonly status: number;
  readonly bytes: Uint8Array;
}

/** What a call is answered from: the token and the backends at the moment of its request. */
export interface CallContext {
  readonly token: Uint8Array;
  readonly origins: readonly string[];
  /** When the request's head was there, by `performance.now()`. */
  readonly startedMs: number;
}

/** A call that has its place among those that run. */
export interface RunningContext extends CallContext {
  readonly place: Place;
}

/** What {@link Executions} are made of. */
export interface ExecutionsOptions {
  readonly ledger: Ledger;
  readonly dispatchers: Dispatchers;
  readonly placement: Placement;
  /** How long the rule may take. */
  readonly placementMs: number;
  readonly signal: AbortSignal;
  readonly emit: RouterListener;
}

/** A submission whose id is known. */
interface Submitted {
  readonly id: string;
  readonly body: Uint8Array;
  readonly pin: string | undefined;
  /** Its turn at the dispatcher that is chosen. */
  readonly turn: HeldTurn;
}

/** The calls about executions. No method rejects. */
export class Executions {
  readonly #parts: ExecutionsOptions;

  constructor(parts: ExecutionsOptions) {
    this.#parts = parts;
  }

  /** `POST /v1/executions`. */
  async submit(body: Uint8Array, pin: string | undefined, context: RunningContext): Promise<Reply | Refusal> {
    const id = requestIdOf(body);
    if (id === undefined) return "invalid-id";
    const turn = new HeldTurn();
    let owner: Owner;
    try {
      const claim = await this.#claim({ id, body, pin, turn }, context);
      if (typeof claim === "string") return claim;
      const submission = decideSubmission(claim, pin);
      if (submission.kind === "refuse") return submission.refusal;
      owner = submission.owner;
      if (submission.kind === "post") return await this.#post(owner, body, context);
    } finally {
      turn.end();
    }
    return this.#relay({ kind: "read", id }, owner, context);
  }

  /** Reads, audits and cancellations: the recorded owner's own answer. */
  async ask(
    call: Extract<Call, { kind: "read" | "audit" | "cancel" }>,
    context: RunningContext,
  ): Promise<Reply | Refusal> {
    const startedMs = performance.now();
    let owner: Owner | undefined;
    try {
      const { ledger, signal } = this.#parts;
      owner = await untilAborted(ledger.lookup(call.id, { signal }), signal);
    } catch (error) {
      const durationMs = performance.now() - startedMs;
      this.#parts.emit({ kind: "lookup", result: "failed", ...this.#failureOf(error), durationMs });
      return "ownership-unreadable";
    }
    return this.#relay(call, owner, context);
  }

  /** `POST /v1/artifacts/prewarm`: to the pinned backend, as it is. */
  async prewarm(body: Uint8Array, pin: string, context: RunningContext): Promise<Reply | Refusal> {
    const { dispatchers } = this.#parts;
    const prewarm = () => dispatchers.prewarm(pin, body, context.token);
    return (await this.#answered(this.#inTurn("submit", pin, context, prewarm))) ?? "prewarm-failed";
  }

  /** A refusal: nothing may be sent. The caller comes again with the same id and bytes. */
  async #claim({ id, body, pin, turn }: Submitted, context: RunningContext): Promise<Claim | Refusal> {
    const { ledger, signal, dispatchers, emit } = this.#parts;
    const startedMs = performance.now();
    // Before it is there nothing is recorded, and nothing is once the router must stop.
    let chosen: string | undefined;
    const chooseOwner = async () => {
      const owner = pin ?? (await this.#place(id, body, context));
      // No id is bound to a dispatcher for which the POST would only wait.
      turn.hold(await dispatchers.turn("submit", owner, context.place));
      // Nor to one whose name is not found.
      await dispatchers.find(owner);
      signal.throwIfAborted();
      chosen = owner;
      return owner;
    };
    try {
      const claim = await untilAborted(ledger.claim(id, body, chooseOwner, { signal }), signal);
      const durationMs = performance.now() - startedMs;
      emit({ kind: "claim", result: claim.kind, ...noFailure, durationMs });
      return claim;
    } catch (error) {
      // A claim that was not waited for may be recorded all the same, and then nobody ever sends its POST: the id has an owner that
      // does not know it. Told to come again, the caller would take that for lost work.
      if (signal.aborted && chosen !== undefined) {
        emit({ kind: "uncertain", backend: chosen });
        return "uncertain";
      }
      const durationMs = performance.now() - startedMs;
      emit({ kind: "claim", result: "failed", ...this.#failureOf(error), durationMs });
      return "no-ownership";
    }
  }

  async #place(id: string, body: Uint8Array, { origins, token, place }: RunningContext): Promise<string> {
    const { placement, placementMs, dispatchers, signal } = this.#parts;
    const health = (origin: string) => dispatchers.health(origin, token, place);
    let chosen: string | undefined;
    try {
      chosen = await choose(placement, { id, body, backends: origins, health }, { placementMs, signal });
    } catch (cause) {
      // The router stops: no mistake of the rule's.
      signal.throwIfAborted();
      throw this.#misplaced(
        cause instanceof PlacementError ? cause : new PlacementError("failed", { cause }),
      );
    }
    if (chosen === undefined) throw new NoBackendError(origins.length);
    if (!origins.includes(chosen))
      throw this.#misplaced(new PlacementError("answered none of the backends that it was given"));
    return chosen;
  }

  /** The rule is the program's own: what goes wrong in it must not pass for dispatchers that are full. */
  #misplaced(error: PlacementError): PlacementError {
    this.#parts.emit({ kind: "defect", error });
    return error;
  }

  /** The one POST. Whatever goes wrong from here on, it is never sent again. */
  async #post(owner: Owner, body: Uint8Array, { token }: CallContext): Promise<Reply | Refusal> {
    this.#parts.emit({ kind: "placed", backend: owner.backend });
    const answer = await this.#answered(this.#parts.dispatchers.submit(owner.backend, body, token));
    if (answer !== undefined) return answer;
    this.#parts.emit({ kind: "uncertain", backend: owner.backend });
    return "uncertain";
  }

  async #relay(
    { kind, id }: Extract<Call, { kind: "read" | "audit" | "cancel" }>,
    recorded: Owner | undefined,
    context: RunningContext,
  ): Promise<Reply | Refusal> {
    const owner = decideOwner(recorded, context.origins);
    if (typeof owner === "string") return owner;
    const { backend } = owner;
    const ask = () => this.#parts.dispatchers.ask(kind, backend, id, context.token);
    const answer = await this.#answered(this.#inTurn("read", backend, context, ask));
    const decision = decideOwnerAnswer(answer?.status);
    return decision === "relay" ? (answer as Reply) : decision;
  }

  /** A call that has its turn at the dispatcher first. @throws BackendError (CELLKIT_ROUTER_BACKEND) */
  async #inTurn(
    lane: Lane,
    backend: string,
    { place }: RunningContext,
    call: () => Promise<Reply>,
  ): Promise<Reply> {
    const leave = await this.#parts.dispatchers.turn(lane, backend, place);
    try {
      return await call();
    } finally {
      leave();
    }
  }

  /** What an event tells of a ledger's failure; anything else is a defect, and answered as safely. */
  #failureOf(error: unknown): Failure {
    if (error instanceof LedgerError) return failureOf(error);
    if (!this.#parts.signal.aborted) this.#parts.emit({ kind: "defect", error });
    return noFailure;
  }

  /** A dispatcher's answer as a reply; undefined where it gave none that is usable. */
  async #answered(answer: Promise<Reply>): Promise<Reply | undefined> {
    try {
      return await answer;
    } catch (error) {
      if (!(error instanceof BackendError)) this.#parts.emit({ kind: "defect", error });
      return undefined;
    }
  }
}

/** Why a ledger gave no answer. */
type Failure = Readonly<Record<"code" | "problem" | "cause", string | undefined>>;

const noFailure: Failure = { code: undefined, problem: undefined, cause: undefined };

/** What of a ledger's failure can be told: its messages hold no id, body or password. Those of a placement rule might. */
function failureOf(error: LedgerError): Failure {
  return { code: error.code, problem: error.message, cause: causeCode(error.cause) };
}

/** The first code down the chain of causes; a store's own names, such as `ECONNREFUSED` or an SQLSTATE. */
function causeCode(cause: unknown, depth = 0): string | undefined {
  if (!(cause instanceof Error) || depth > 4) return undefined;
  if ("code" in cause && typeof cause.code === "string") return cause.code;
  return causeCode(cause instanceof AggregateError ? cause.errors[0] : cause.cause, depth + 1);
}
