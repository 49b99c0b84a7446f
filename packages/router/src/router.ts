// The router: a listener in front of a ledger and dispatchers. Everything it decides stands in core/; this connects the parts.
import { setMaxListeners } from "node:events";
import type { LookupFunction } from "node:net";
import type { TlsOptions } from "node:tls";
import type { Ledger } from "@cellkit/ledger";
import type { BackendSource } from "./backend/backend-list.ts";
import { Dispatchers, type Lane as TurnLane } from "./backend/dispatchers.ts";
import { CapabilityFanOut } from "./capability-fan-out.ts";
import { encodeAnswer, type Refusal } from "./core/answer.ts";
import type { Credentials } from "./core/credentials.ts";
import { type Call, decideCall, refuseCaller, refuseScoped } from "./core/decide.ts";
import type { RequestHead } from "./core/request-head.ts";
import { routeOf } from "./core/route.ts";
import type { CredentialSource } from "./credential-files.ts";
import { CredentialError, RouterOptionError } from "./errors.ts";
import { Executions, type Reply, type RunningContext } from "./executions.ts";
import { type Placement, placeByHash } from "./placement.ts";
import { guardListener, type RequestRoute, type RouterListener } from "./router-event.ts";
import { type ResolvedLimits, type RouterLimits, resolveLimits } from "./router-limits.ts";
import type { Handling } from "./server/connection.ts";
import { Listener } from "./server/listener.ts";
import { RunningLimit } from "./server/running-limit.ts";

/** What {@link createRouter} takes. */
export interface RouterOptions {
  /** Who owns which id; shared by all replicas. The router does not close it. */
  readonly ledger: Ledger;
  readonly backends: BackendSource;
  readonly tokens: CredentialSource;
  /** Where new ids go. @default placeByHash */
  readonly placement?: Placement;
  readonly limits?: RouterLimits;
  /**
   * Keep connections to dispatchers for later calls, but for submissions and prewarming. Only for dispatchers that frame their answers
   * with `Content-Length`; those that close are closed with. @default false, as the original: a connection for each call
   */
  readonly keepAlive?: boolean;
  /** Looks names of backends up, once for all calls of five seconds; the last answer stays while one fails. @default the system's names */
  readonly lookup?: LookupFunction;
  /** Hears of requests, claims, calls and health; for metrics and logs. */
  readonly onEvent?: RouterListener;
}

/** Where a router listens. */
export interface ListenAddress {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** TLS, where the original speaks plain TCP. */
  readonly tls?: TlsOptions;
}

/** What a router is doing at this moment. */
export interface RouterCounts {
  /** Open connections. */
  readonly connections: number;
  /** Requests that run: at most `limits.runningCount` submissions, as many reads, and those for capabilities. */
  readonly running: number;
  /** Whole requests that wait for their turn, or for one at their dispatcher. */
  readonly waiting: number;
}

/** A router. */
export interface Router extends AsyncDisposable {
  /** @throws RouterOptionError (CELLKIT_ROUTER_OPTION) when it listens already or was stopped; else what the system says of the address */
  listen(address: ListenAddress): Promise<{ readonly host: string; readonly port: number }>;
  /** Another certificate for connections to come. */
  renewTls(tls: TlsOptions): void;
  counts(): RouterCounts;
  /**
   * Accepts nothing more, finishes what runs, and ends connections whose request has not come. Every claim has its POST answered, or its
   * caller told that the outcome is unknown. The same promise each time.
   * @param options `signal` ends calls to dispatchers; their callers are told so
   */
  stop(options?: { readonly signal?: AbortSignal }): Promise<void>;
}

/** How long requests that are on their way may still come in when the router stops. */
const arrivalMs = 500;
/** How long the last answers may take once calls were ended. */
const lastAnswersMs = 1_000;

/**
 * Makes a router; it does nothing before `listen`.
 * @throws RouterOptionError (CELLKIT_ROUTER_OPTION) for limits that are none
 */
export function createRouter(options: RouterOptions): Router {
  return new ListeningRouter(options);
}

class ListeningRouter implements Router {
  readonly #options: RouterOptions;
  readonly #limits: ResolvedLimits;
  readonly #emit: RouterListener;
  readonly #abort = new AbortController();
  readonly #dispatchers: Dispatchers;
  readonly #executions: Executions;
  readonly #capabilities: CapabilityFanOut;
  readonly #running: Readonly<Record<Lane, RunningLimit>>;
  #listener: Listener | undefined;
  #stopped: Promise<void> | undefined;

  constructor(options: RouterOptions) {
    this.#options = options;
    this.#limits = resolveLimits(options.limits);
    const { runningCount } = this.#limits;
    this.#running = {
      submit: new RunningLimit(runningCount),
      read: new RunningLimit(runningCount),
      capabilities: new RunningLimit(Number.POSITIVE_INFINITY),
    };
    const emit = guardListener(options.onEvent);
    const { signal } = this.#abort;
    // Every running request listens to it.
    setMaxListeners(0, signal);
    const { ledger, lookup, placement = placeByHash, keepAlive = false } = options;
    // One dispatcher takes half of the room at most.
    const turnCount = Math.ceil(runningCount / 2);
    const dispatchers = new Dispatchers({
      bounds: this.#limits,
      turnCount,
      lookup,
      keepAlive,
      signal,
      emit,
    });
    this.#emit = emit;
    this.#dispatchers = dispatchers;
    const { placementMs } = this.#limits;
    this.#executions = new Executions({ ledger, dispatchers, placement, placementMs, signal, emit });
    this.#capabilities = new CapabilityFanOut(dispatchers, emit);
  }

  async listen({ host, port, tls }: ListenAddress): Promise<{ host: string; port: number }> {
    if (this.#listener !== undefined || this.#stopped !== undefined)
      throw new RouterOptionError("a router listens once: make another one");
    this.#listener = await Listener.open({
      host,
      port,
      tls,
      maxConnectionCount: this.#limits.connectionCount,
      context: {
        limits: this.#limits,
        handle: (head) => this.#handle(head),
        hold: (bytes) => this.#dispatchers.hold(bytes),
      },
      onOutcome: (outcome, durationMs) => this.#emit({ kind: "request", ...outcome, durationMs }),
      onDrop: () => this.#emit({ kind: "dropped" }),
      onDefect: (error) => this.#emit({ kind: "defect", error }),
    });
    return this.#listener.address;
  }

  renewTls(tls: TlsOptions): void {
    this.#listener?.renewTls(tls);
  }

  counts(): RouterCounts {
    const lanes = Object.values(this.#running);
    return {
      connections: this.#listener?.counts.open ?? 0,
      running: lanes.reduce((sum, { runningCount }) => sum + runningCount, 0),
      waiting: lanes.reduce((sum, { waitingCount }) => sum + waitingCount, 0),
    };
  }

  stop(options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    const end = () => this.#abort.abort();
    if (options.signal?.aborted === true) end();
    options.signal?.addEventListener("abort", end);
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #stop(): Promise<void> {
    const listener = this.#listener;
    if (listener === undefined) return;
    listener.stopAccepting();
    const arrival = setTimeout(() => listener.closeReceiving(), arrivalMs);
    let last: NodeJS.Timeout | undefined;
    this.#abort.signal.addEventListener("abort", () => {
      listener.closeReceiving();
      last = setTimeout(() => listener.destroy(), lastAnswersMs);
    });
    if (this.#abort.signal.aborted) last = setTimeout(() => listener.destroy(), lastAnswersMs);
    await listener.empty();
    // Handshakes that are not done.
    listener.destroy();
    clearTimeout(arrival);
    clearTimeout(last);
    this.#dispatchers.close();
  }

  async #handle(head: RequestHead): Promise<Handling> {
    const startedMs = performance.now();
    const route = routeNameOf(head);
    const scoped = refuseScoped(head);
    if (scoped !== undefined) return { kind: "refuse", route, refusal: scoped };
    const credentials = this.#credentials();
    if (credentials === undefined) return { kind: "refuse", route, refusal: "credentials" };
    // Before the list: a lookup of names is waited for by nobody who may not call.
    const refusal = refuseCaller(head, credentials);
    if (refusal !== undefined) return { kind: "refuse", route, refusal };
    const origins = await this.#options.backends.origins();
    const call = decideCall(head, origins);
    if (typeof call === "string") return { kind: "refuse", route, refusal: call };
    const context = { token: credentials.backend, origins, startedMs };
    const bodyBytes = "bodyBytes" in call ? call.bodyBytes : 0;
    const lane = this.#running[laneOf(call)];
    return {
      kind: "run",
      route,
      bodyBytes,
      enter: () => lane.enter(),
      run: (body, place) => this.#run(call, body, { ...context, place }),
    };
  }

  #credentials(): Credentials | undefined {
    try {
      return this.#options.tokens.load();
    } catch (error) {
      if (error instanceof CredentialError) this.#emit({ kind: "credentials", error });
      else this.#emit({ kind: "defect", error });
      return undefined;
    }
  }

  async #run(call: Call, body: Buffer, context: RunningContext): Promise<Reply | Refusal> {
    switch (call.kind) {
      case "submit":
        return this.#executions.submit(body, call.pin, context);
      case "prewarm":
        return this.#executions.prewarm(body, call.pin, context);
      case "capabilities": {
        const answer = await this.#capabilities.ask(context);
        return answer === undefined
          ? "no-capabilities"
          : { status: answer.status, bytes: encodeAnswer(answer) };
      }
      default:
        return this.#executions.ask(call, context);
    }
  }
}

/** What waits for its place together. */
type Lane = TurnLane | "capabilities";

function laneOf({ kind }: Call): Lane {
  if (kind === "submit" || kind === "prewarm") return "submit";
  return kind === "capabilities" ? kind : "read";
}

function routeNameOf({ method, path }: RequestHead): RequestRoute {
  const { kind } = routeOf(method, path);
  return kind === "parents" || kind === "scoped" ? "none" : kind;
}
