// The calls that a router makes to its dispatchers, each with its bounds (execution API, section 4.5).
import { isIP, type LookupFunction } from "node:net";
import type { NodeReport } from "@cellkit/execution/contract";
import { type BackendCall, encodeCall } from "../core/backend-call.ts";
import { type BackendHealth, parseHealth, parseReport, unhealthy } from "../core/node-report.ts";
import { parseOrigin } from "../core/origin.ts";
import { SilenceGuard } from "../core/silence-guard.ts";
import { BackendError } from "../errors.ts";
import type { BackendCallKind, RouterListener } from "../router-event.ts";
import type { Place } from "../server/running-limit.ts";
import { ByteBudget } from "./byte-budget.ts";
import { type BackendAnswer, type ExchangeBounds, type ExchangeContext, exchange } from "./exchange.ts";
import { KeptConnections } from "./kept-connections.ts";
import { OriginTurns } from "./origin-turns.ts";
import { resolveBy, SharedLookups } from "./shared-lookups.ts";
import { SystemNames } from "./system-names.ts";

/** What {@link Dispatchers} are made with. */
export interface DispatchersOptions {
  readonly bounds: BackendBounds;
  /**
   * How many submissions, and as many reads, may be busy with one dispatcher at once. Where as many wait for one that has answered nothing
   * for two seconds, it has no further call about executions. @default no limit
   */
  readonly turnCount?: number;
  /** Looks names of origins up, once for all calls of five seconds. @default the system's names */
  readonly lookup: LookupFunction | undefined;
  /** Keep connections for the next call, but those of submissions and prewarming, which are never sent a second time. @default false */
  readonly keepAlive?: boolean;
  /** Ends all calls. */
  readonly signal: AbortSignal;
  readonly emit: RouterListener;
}

/** The bounds of calls to dispatchers; defaults are the original's, where it has them. */
export interface BackendBounds {
  /** Name lookup and connecting. @default 3_000 */
  readonly connectMs: number;
  /** Each wait for bytes to move. @default 10_000 */
  readonly operationMs: number;
  /** A whole call but for health and capabilities, however steadily its bytes come. The original has no such bound. @default 30_000 */
  readonly exchangeMs: number;
  /** A whole health probe. The original has no such bound. @default 5_000 */
  readonly healthMs: number;
  /** A whole answer, head included. @default 16_777_216 */
  readonly answerBytes: number;
  /** What answers of more than 64 KiB may hold together until their callers have them; one beyond counts as failed. Beside its start, the process may need nearly three times as much in a burst (660 MiB measured). @default 268_435_456 */
  readonly totalAnswerBytes: number;
}

/** The whole answer to a health probe; the original takes 16 MiB. */
const healthBytes = 65_536;
/** A whole capability report, and the time for it once the connection stands. */
const reportBytes = 65_536;
const reportMs = 2_000;
const reportConnectMs = 1_800;
/** With the lookup of dispatchers before it, all of it stays below four seconds, so that callers with five seconds hear of the other nodes. */
export const capabilitiesMs = 3_800;

const paths = {
  read: (id: string) => `/v1/executions/${id}`,
  audit: (id: string) => `/v1/executions/${id}/audit`,
  cancel: (id: string) => `/v1/executions/${id}/cancel`,
} as const;

/** All dispatchers of a router. */
export class Dispatchers {
  readonly #bounds: ExchangeBounds;
  readonly #healthMs: number;
  readonly #context: ExchangeContext;
  readonly #emit: RouterListener;
  readonly #kept: KeptConnections | undefined;
  readonly #names = new SystemNames();
  readonly #lookups: SharedLookups;
  readonly #guard: SilenceGuard;
  readonly #turns: Readonly<Record<Lane, OriginTurns>>;
  /** Probes that run: callers that come meanwhile have the same answer. */
  readonly #probes = new Map<
    string,
    { readonly token: Uint8Array; readonly health: Promise<BackendHealth> }
  >();

  constructor(options: DispatchersOptions) {
    const { bounds, lookup, keepAlive = false, turnCount = Number.POSITIVE_INFINITY, signal, emit } = options;
    this.#guard = new SilenceGuard(turnCount);
    const turns = { limitCount: turnCount, isSilent: (origin: string) => this.isSilent(origin), signal };
    this.#turns = { submit: new OriginTurns(turns), read: new OriginTurns(turns) };
    const { connectMs, operationMs, exchangeMs, answerBytes } = bounds;
    this.#bounds = { connectMs, operationMs, totalMs: exchangeMs, maxBytes: answerBytes };
    this.#healthMs = bounds.healthMs;
    this.#lookups = new SharedLookups(
      lookup === undefined ? (name) => this.#names.resolve(name) : resolveBy(lookup),
    );
    signal.addEventListener("abort", () => this.#names.close());
    const budget = new ByteBudget(bounds.totalAnswerBytes);
    this.#context = { budget, lookup: this.#lookups.lookup, signal };
    this.#emit = emit;
    this.#kept = keepAlive ? new KeptConnections() : undefined;
  }

  /** Ends the connections that are kept, and lookups that run. */
  close(): void {
    this.#names.close();
    this.#kept?.close();
  }

  /**
   * Counts an answer against the memory for large ones until its caller has it: ask for it as soon as the answer is there.
   * @returns to be called once, when it was passed on
   */
  hold(answerBytes: number): () => void {
    return this.#context.budget.hold(answerBytes);
  }

  /** Whether one more call would wait for nothing: many do, and the dispatcher has answered none of them for two seconds. */
  isSilent(origin: string): boolean {
    return this.#guard.isSilent(origin, performance.now());
  }

  /**
   * A turn at a dispatcher, before a request of the lane is busy with it.
   * @param place that of the request: others' while it waits
   * @returns to be called when the request is done with the dispatcher
   * @throws BackendError (CELLKIT_ROUTER_BACKEND) when the dispatcher is silent, or the router stops: then no turn is waited for
   */
  async turn(lane: Lane, origin: string, place?: Place): Promise<() => void> {
    if (this.isSilent(origin)) throw new BackendError(origin, "is silent, and many calls wait for it", "no");
    const turns = this.#turns[lane];
    const wait = () => turns.wait(origin);
    return turns.take(origin) ?? (await (place === undefined ? wait() : place.lend(wait)));
  }

  /**
   * Finds the address of a dispatcher, before an id is bound to it: a POST that could not even be begun would use the id up.
   * @throws BackendError (CELLKIT_ROUTER_BACKEND) where its name is not found
   */
  async find(origin: string): Promise<void> {
    const parsed = parseOrigin(origin);
    if ("problem" in parsed) throw new BackendError(origin, `is ${parsed.problem}`, "no");
    if (isIP(parsed.host) !== 0) return;
    try {
      await this.#lookups.findWithin(this.#bounds.connectMs, parsed.host);
    } catch (cause) {
      throw new BackendError(origin, "has a name that is not found", "no", { cause });
    }
  }

  /** The one POST of an execution. @throws BackendError (CELLKIT_ROUTER_BACKEND) */
  submit(origin: string, body: Uint8Array, token: Uint8Array): Promise<BackendAnswer> {
    const call = { method: "POST", path: "/v1/executions", host: origin, body } as const;
    return this.#exchange("submit", origin, { call, token });
  }

  /** A call about an execution that the dispatcher owns. @throws BackendError (CELLKIT_ROUTER_BACKEND) */
  ask(
    kind: "read" | "audit" | "cancel",
    origin: string,
    id: string,
    token: Uint8Array,
  ): Promise<BackendAnswer> {
    const path = paths[kind](id);
    const call =
      kind === "cancel"
        ? ({ method: "POST", path, host: origin, body: new Uint8Array() } as const)
        : ({ method: "GET", path, host: origin } as const);
    // Records, audits and cancellations name their execution.
    return this.#exchange(kind, origin, { call, token, mark: `"${id}"` });
  }

  /** @throws BackendError (CELLKIT_ROUTER_BACKEND) */
  prewarm(origin: string, body: Uint8Array, token: Uint8Array): Promise<BackendAnswer> {
    const call = { method: "POST", path: "/v1/artifacts/prewarm", host: origin, body } as const;
    return this.#exchange("prewarm", origin, { call, token });
  }

  /**
   * Whether a dispatcher takes new work. Never rejects: one that cannot be asked, or is silent, is not healthy.
   * @param place that of the request which asks
   */
  async health(origin: string, token: Uint8Array, place?: Place): Promise<BackendHealth> {
    let leave: () => void;
    try {
      leave = await this.turn("submit", origin, place);
    } catch (error) {
      if (error instanceof BackendError) return unhealthy;
      throw error;
    }
    // All who wait count, though they share one probe.
    this.#guard.begin(origin, performance.now());
    try {
      return await this.#sharedProbe(origin, token);
    } finally {
      this.#guard.end(origin, false, performance.now());
      leave();
    }
  }

  #sharedProbe(origin: string, token: Uint8Array): Promise<BackendHealth> {
    const running = this.#probes.get(origin);
    if (running?.token === token) return running.health;
    const health = this.#probe(origin, token);
    const probe = { token, health };
    this.#probes.set(origin, probe);
    void health.finally(() => {
      if (this.#probes.get(origin) === probe) this.#probes.delete(origin);
    });
    return health;
  }

  /**
   * A dispatcher's report; undefined where there is none that can be relied on. Never rejects.
   * @param totalMs how long it may take
   */
  async report(
    origin: string,
    token: Uint8Array,
    totalMs: number = capabilitiesMs,
  ): Promise<NodeReport | undefined> {
    const call = { method: "GET", path: "/v1/capabilities", host: "dispatcher" } as const;
    const bounds = {
      connectMs: Math.min(reportConnectMs, this.#bounds.connectMs),
      operationMs: reportMs,
      answerMs: reportMs,
      totalMs: Math.max(1, totalMs),
      maxBytes: reportBytes,
    };
    const answer = await this.#tried("capabilities", origin, { call, token, bounds });
    return answer?.status === 200 ? parseReport(bodyOf(answer)) : undefined;
  }

  async #probe(origin: string, token: Uint8Array): Promise<BackendHealth> {
    const call = { method: "GET", path: "/v1/health", host: origin } as const;
    const bounds = { ...this.#bounds, totalMs: this.#healthMs, maxBytes: healthBytes };
    const answer = await this.#tried("health", origin, { call, token, bounds });
    const health = answer === undefined ? unhealthy : parseHealth(answer.status, bodyOf(answer));
    this.#emit({ kind: "health", backend: origin, ...health });
    return health;
  }

  async #tried(kind: BackendCallKind, origin: string, parts: CallParts): Promise<BackendAnswer | undefined> {
    try {
      return await this.#exchange(kind, origin, parts);
    } catch (error) {
      if (error instanceof BackendError) return undefined;
      throw error;
    }
  }

  async #exchange(kind: BackendCallKind, backend: string, parts: CallParts): Promise<BackendAnswer> {
    const startedMs = performance.now();
    const emit = (status: number | undefined, problem: string | undefined) =>
      this.#emit({
        kind: "backend",
        call: kind,
        backend,
        status,
        problem,
        durationMs: performance.now() - startedMs,
      });
    this.#guard.begin(backend, startedMs);
    try {
      const answer = await this.#send(kind, backend, parts);
      this.#guard.end(backend, true, performance.now());
      emit(answer.status, undefined);
      return answer;
    } catch (error) {
      this.#guard.end(backend, false, performance.now());
      emit(undefined, error instanceof Error ? error.message : "failed");
      throw error;
    }
  }

  async #send(kind: BackendCallKind, backend: string, parts: CallParts): Promise<BackendAnswer> {
    const { call, token, bounds = this.#bounds, mark } = parts;
    const parsed = parseOrigin(backend);
    if ("problem" in parsed) throw new BackendError(backend, `is ${parsed.problem}`, "no");
    // What may be sent twice may be sent on a connection that could be closed already.
    const kept = kind === "submit" || kind === "prewarm" ? undefined : this.#kept;
    const sent = encodeCall({ ...call, keepAlive: kept !== undefined }, token);
    return exchange(parsed, sent, { bounds, context: this.#context, kept, mark });
  }
}

/** What waits for its turn together. Reads have turns of their own, so that submissions that wait for a dispatcher hold none up. */
export type Lane = "submit" | "read";

/** A call, who makes it, and its bounds where they are not the usual ones. */
interface CallParts {
  readonly call: BackendCall;
  readonly token: Uint8Array;
  readonly bounds?: ExchangeBounds;
  /** See `ExchangeOptions`. */
  readonly mark?: string;
}

function bodyOf(answer: BackendAnswer): string {
  return answer.bytes.toString("utf8", answer.bodyAt);
}
