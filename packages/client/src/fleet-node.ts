// One node: its address, its undici Pool, and what is under way there.
import { buildConnector, type Dispatcher, Pool } from "undici";
import { NodeState, type NodeStateName } from "./core/node-state.ts";
import type { ResolvedEndpoint } from "./endpoints.ts";
import { addressOf } from "./endpoints.ts";
import type { ResolvedFleet } from "./options.ts";

/** What a caller may see of a node. */
export interface NodeView {
  readonly id: string;
  readonly url: string;
  readonly state: NodeStateName;
  /** Requests under way, bodies included. */
  readonly inflight: number;
  readonly weight: number;
  readonly loadBalanced: boolean;
  /** Milliseconds since the Unix epoch; only while ejected. */
  readonly ejectedUntil?: number;
  /** Time of the last TCP (and TLS) connect. */
  readonly rttMs?: number;
}

/** Pool defaults: a node of ours keeps idle connections for 15 s or longer, so the client lets go first. */
const poolDefaults: Pool.Options = {
  connections: 128,
  pipelining: 1,
  keepAliveTimeout: 10_000,
  keepAliveMaxTimeout: 14_000,
  allowH2: false,
};
const CONNECT_TIMEOUT_MS = 2_000;
/** A pool that is no longer wanted may finish its requests for this long. */
const RETIRE_MS = 30_000;

/** A node of a fleet. Internal: callers see a {@link NodeView}. */
export class FleetNode {
  readonly id: string;
  readonly url: URL;
  readonly weight: number;
  readonly loadBalanced: boolean;
  readonly state: NodeState;
  inflight = 0;
  /** Sockets that are open here and want it watched. */
  watchers = 0;
  /** Time of the last connect, undefined before the first. */
  connectMs: number | undefined;
  readonly #fleet: ResolvedFleet;
  readonly #unpipelined: boolean;
  #pool: Pool | undefined;
  readonly #retired = new Map<Pool, Promise<void>>();

  constructor(endpoint: ResolvedEndpoint, fleet: ResolvedFleet, admitted: boolean) {
    this.id = endpoint.id;
    this.url = endpoint.url;
    this.weight = endpoint.weight;
    this.loadBalanced = endpoint.loadBalanced;
    this.#fleet = fleet;
    this.#unpipelined = (fleet.pool.pipelining ?? 1) <= 1;
    this.state = new NodeState(fleet.rules, fleet.now(), admitted || endpoint.loadBalanced);
  }

  /** `host:port`. */
  get address(): string {
    return addressOf(this.url);
  }

  /** Sends a request on one of the node's connections. */
  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#pool ??= this.#open();
    // `blocking` keeps a pipeline from being filled behind a slow request. Without a pipeline it does nothing but make
    // undici go through its queue once more per response, which was 4 % of a small GET's CPU time here.
    const lean = this.#unpipelined && options.blocking === undefined;
    this.#pool.dispatch(lean ? { ...options, blocking: false } : options, handler);
  }

  /**
   * Lets requests under way finish and reuses none of the idle connections: the next request opens a new pool.
   * What has not finished after 30 s is cut.
   */
  retirePool(): void {
    const pool = this.#pool;
    if (pool === undefined) return;
    this.#pool = undefined;
    const cut = setTimeout(() => void pool.destroy(), RETIRE_MS);
    cut.unref();
    const closed = pool.close().finally(() => {
      clearTimeout(cut);
      this.#retired.delete(pool);
    });
    this.#retired.set(pool, closed);
  }

  /** Lets requests under way finish. */
  async close(): Promise<void> {
    this.retirePool();
    await Promise.all(this.#retired.values());
  }

  /** Cuts everything. */
  async destroy(error: Error): Promise<void> {
    const pools = [...this.#retired.keys()];
    if (this.#pool !== undefined) pools.push(this.#pool);
    this.#pool = undefined;
    await Promise.all(pools.map((pool) => pool.destroy(error)));
  }

  view(): NodeView {
    const until = this.state.ejectedUntilMs;
    return {
      id: this.id,
      url: this.url.origin,
      state: this.state.name,
      inflight: this.inflight,
      weight: this.weight,
      loadBalanced: this.loadBalanced,
      ...(until === undefined ? {} : { ejectedUntil: Math.round(Date.now() + until - this.#fleet.now()) }),
      ...(this.connectMs === undefined ? {} : { rttMs: this.connectMs }),
    };
  }

  // The pool's origin is the authority and only its connector knows the node. So undici writes the right Host (and TLS
  // asks for the right name) without a header being touched per request.
  #open(): Pool {
    const { authority, pool: options, now } = this.#fleet;
    const given = options.connect;
    const dial =
      typeof given === "function"
        ? given
        : buildConnector({ timeout: CONNECT_TIMEOUT_MS, ...given, allowH2: false });
    const target = {
      hostname: this.url.hostname.replace(/^\[|\]$/g, ""),
      host: this.url.host,
      port: this.url.port,
    };
    const connect: buildConnector.connector = (asked, callback) => {
      const startedMs = now();
      dial(
        {
          ...asked,
          ...target,
          protocol: this.url.protocol,
          servername: asked.servername ?? authority.hostname,
        },
        (...result) => {
          if (result[0] === null) this.connectMs = now() - startedMs;
          callback(...result);
        },
      );
    };
    return new Pool(authority.origin, { ...poolDefaults, ...options, connect });
  }
}
