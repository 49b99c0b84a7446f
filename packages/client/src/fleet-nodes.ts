// The nodes of one fleet: which there are, which may be used, and what is known of them. HTTP calls and sockets both
// choose here and report here, so what one learns the other knows.
import type { DrainMarker } from "./core/drain-marker.ts";
import type { Transition } from "./core/node-state.ts";
import { powerOfTwo } from "./core/selection.ts";
import { followSource } from "./endpoint-source.ts";
import { type Endpoint, resolveEndpoints, StaticEndpoints, toStatic } from "./endpoints.ts";
import { events } from "./events.ts";
import { FleetNode, type NodeView } from "./fleet-node.ts";
import { NodeProber } from "./node-prober.ts";
import type { ResolvedFleet } from "./options.ts";

/** A node changed its state. */
export interface NodeChange extends Transition {
  readonly node: FleetNode;
}

const none: ReadonlySet<FleetNode> = new Set();

const byFleet = new WeakMap<object, FleetNodes>();

/** The nodes of a fleet, for the parts of this package that stand beside it. */
export function nodesOf(fleet: object): FleetNodes {
  const nodes = byFleet.get(fleet);
  if (nodes === undefined) throw new TypeError("not a Fleet of this copy of @cellkit/client");
  return nodes;
}

/** Internal: the nodes behind a `Fleet`. */
export class FleetNodes {
  /** Logical origin; its host is the `Host` that every node sees. */
  readonly authority: URL;
  /** Recognises a drain refusal. */
  readonly marker: DrainMarker;
  readonly #options: ResolvedFleet;
  #all: FleetNode[] = [];
  /** Admitted and probation, kept ready so that a choice costs nothing. */
  #usable: FleetNode[] = [];
  #turn = 0;
  readonly #listeners = new Set<(change: NodeChange) => void>();
  readonly #waiting = new Set<() => void>();
  #known = false;
  readonly #prober: NodeProber;
  /** Gone from the source, with requests that are still under way. */
  readonly #leaving = new Set<FleetNode>();
  readonly #stop = new AbortController();

  constructor(fleet: object, options: ResolvedFleet) {
    this.authority = options.authority;
    this.marker = options.marker;
    this.#options = options;
    this.#prober = new NodeProber(options, this.#stop.signal, (node, transition) =>
      this.#announce(node, transition),
    );
    const source =
      Symbol.asyncIterator in options.endpoints ? options.endpoints : toStatic(options.endpoints);
    if (source instanceof StaticEndpoints) this.#update(source.list);
    else {
      const { random } = options;
      void followSource(source, (set) => this.#update(set), { random, signal: this.#stop.signal });
    }
    byFleet.set(fleet, this);
  }

  /** The fleet's clock (milliseconds, monotonic) and dice, for the sockets beside it. */
  get clock(): { now(): number; random(): number } {
    return this.#options;
  }

  /** The `pool.connect` options (TLS among them) unless they are a function; sockets dial with them too. */
  get connectOptions(): object {
    const { connect } = this.#options.pool;
    return typeof connect === "object" && connect !== null ? connect : {};
  }

  /** Every node, whatever its state. */
  get all(): readonly FleetNode[] {
    return this.#all;
  }

  /** True when the only endpoint hides several nodes. */
  get loadBalancedOnly(): boolean {
    return this.#all.length === 1 && this.#all[0]?.loadBalanced === true;
  }

  /** Aborted when the fleet closes. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /**
   * A node for the next attempt: usable ones that are not in `excluding`, else admitted ones that are.
   * @returns undefined when every node is set aside, or none is known
   */
  pick(excluding: ReadonlySet<FleetNode> = none): FleetNode | undefined {
    const { select, random } = this.#options;
    if (excluding.size === 0 && select === "p2c") {
      const node = powerOfTwo(this.#usable, random);
      if (node === undefined || node.state.name === "admitted" || node.inflight === 0) return node;
    }
    const free = this.#usable.filter((node) => node.state.name === "admitted" || node.inflight === 0);
    const fresh = free.filter((node) => !excluding.has(node));
    return this.#choose(fresh.length > 0 ? fresh : free);
  }

  /** True when {@link pick} would answer a node that is not in `excluding`. */
  hasOther(excluding: ReadonlySet<FleetNode>): boolean {
    return this.#usable.some(
      (node) => !excluding.has(node) && (node.state.name === "admitted" || node.inflight === 0),
    );
  }

  /**
   * As {@link pick}; when there is nothing to pick, waits up to `waitMs` for a change, and then takes the set-aside
   * node that announced the earliest return.
   * @returns undefined when there is no node at all
   */
  async pickOrWait(
    excluding: ReadonlySet<FleetNode>,
    waitMs: number,
    signal?: AbortSignal,
  ): Promise<FleetNode | undefined> {
    const untilMs = this.#options.now() + waitMs;
    for (;;) {
      const node = this.pick(excluding);
      if (node !== undefined) return node;
      const leftMs = untilMs - this.#options.now();
      if (leftMs <= 0) return this.#earliest();
      await this.nextChange(leftMs, signal);
      signal?.throwIfAborted();
    }
  }

  /** Resolves when a node changed or the set did, when `signal` aborts, or after `waitMs`; never rejects. */
  nextChange(waitMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = waitMs === Number.POSITIVE_INFINITY ? undefined : setTimeout(done, waitMs);
      this.#waiting.add(done);
      signal?.addEventListener("abort", done);
      if (signal?.aborted || this.#stop.signal.aborted) done();
    });
  }

  /** The node refused because it drains. A load-balanced endpoint stays: another node may answer next. */
  reportDrain(node: FleetNode, retryAfterMs = 0): void {
    if (node.loadBalanced) return;
    const { now, random } = this.#options;
    this.#prober.apply(node, node.state.drained(now(), retryAfterMs, random()));
  }

  /** A connect failure, or a request (or socket) that ended without an answer. */
  reportFailure(node: FleetNode): void {
    const { now, random, maxEjectedRatio } = this.#options;
    const ejected = this.#all.filter((other) => other.state.name === "ejected").length;
    const mayEject = !node.loadBalanced && (ejected + 1) / this.#all.length <= maxEjectedRatio;
    this.#prober.apply(node, node.state.failed(now(), mayEject, random()));
  }

  /** The node answered, with anything but a drain refusal. */
  reportAnswer(node: FleetNode): void {
    if (node.state.failures === 0 && node.state.name === "admitted") return;
    this.#prober.apply(node, node.state.answered(this.#options.now()));
  }

  /** Something hints that the node may be leaving: look soon. At most once a second per node. */
  probeSoon(node: FleetNode): void {
    if (!node.loadBalanced) this.#prober.hint(node);
  }

  /** Probes the node regularly until the returned function is called: for open sockets, once per node. */
  watch(node: FleetNode): () => void {
    node.watchers += 1;
    this.#prober.watch(node);
    let watching = true;
    return () => {
      if (watching) node.watchers -= 1;
      watching = false;
    };
  }

  /** Tells every change of state until the returned function is called. */
  onChange(listener: (change: NodeChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  views(): readonly NodeView[] {
    return this.#all.map((node) => node.view());
  }

  /** Resolves when the first set of endpoints is known; rejects with the signal's reason. */
  async ready(signal?: AbortSignal): Promise<void> {
    while (!this.#known && !this.#stop.signal.aborted) {
      signal?.throwIfAborted();
      await this.nextChange(Number.POSITIVE_INFINITY, signal);
    }
    signal?.throwIfAborted();
  }

  /** Stops probes and sources, lets requests under way finish. */
  async close(): Promise<void> {
    this.#end();
    await Promise.all([...this.#all, ...this.#leaving].map((node) => node.close()));
  }

  /** Stops everything now; requests under way fail with `error`. */
  async destroy(error: Error): Promise<void> {
    this.#end();
    await Promise.all([...this.#all, ...this.#leaving].map((node) => node.destroy(error)));
  }

  #end(): void {
    this.#stop.abort();
    this.#prober.stop();
    this.#wakeWaiters();
  }

  #choose(candidates: readonly FleetNode[]): FleetNode | undefined {
    const { select, random } = this.#options;
    if (select === "round-robin") {
      this.#turn = (this.#turn + 1) % Number.MAX_SAFE_INTEGER;
      return candidates[this.#turn % candidates.length];
    }
    if (typeof select === "function" && candidates.length > 0) {
      const chosen = select(candidates.map((node) => node.view()));
      const node = candidates.find(({ id }) => id === chosen?.id);
      if (node !== undefined) return node;
    }
    return powerOfTwo(candidates, random);
  }

  #earliest(): FleetNode | undefined {
    let earliest: FleetNode | undefined;
    for (const node of this.#all) {
      if (earliest === undefined || node.state.notBeforeMs < earliest.state.notBeforeMs) earliest = node;
    }
    return earliest;
  }

  #announce(node: FleetNode, transition: Transition): void {
    if (transition.to === "draining") node.retirePool();
    this.#refresh();
    if (events.node.hasSubscribers) events.node.publish({ id: node.id, ...transition });
    for (const listener of this.#listeners) listener({ node, ...transition });
  }

  /** Keeps the list of usable nodes; when there is none, new nodes are used before their first good probe. */
  #refresh(): void {
    this.#usable = this.#all.filter((node) => !node.state.setAside);
    if (this.#usable.length === 0) {
      const nowMs = this.#options.now();
      const presumed = this.#all.flatMap((node) => {
        const transition = node.state.presume(nowMs);
        return transition === undefined ? [] : [{ node, transition }];
      });
      this.#usable = this.#all.filter((node) => !node.state.setAside);
      for (const { node, transition } of presumed) this.#announce(node, transition);
    }
    this.#wakeWaiters();
  }

  #wakeWaiters(): void {
    for (const done of [...this.#waiting]) done();
  }

  /** Takes a full set; an empty one is ignored, since a fleet without nodes is never what was meant. */
  #update(set: readonly Endpoint[]): void {
    const wanted = new Map(resolveEndpoints(set).map((endpoint) => [endpoint.id, endpoint]));
    if (wanted.size === 0) return;
    const removed = this.#all.filter((node) => !wanted.has(node.id));
    const kept = this.#all.filter((node) => wanted.has(node.id));
    for (const node of kept) wanted.delete(node.id);
    const added = [...wanted.values()].map(
      (endpoint) => new FleetNode(endpoint, this.#options, kept.length === 0),
    );
    this.#all = [...kept, ...added];
    this.#known = true;
    for (const node of removed) {
      const transition = node.state.removed(this.#options.now());
      this.#prober.apply(node, transition);
      this.#leaving.add(node);
      void node.close().finally(() => this.#leaving.delete(node));
    }
    this.#refresh();
    for (const node of added) this.#prober.arm(node);
    if (events.endpoints.hasSubscribers && added.length + removed.length > 0) {
      const ids = (nodes: readonly FleetNode[]): string[] => nodes.map(({ id }) => id);
      events.endpoints.publish({ added: ids(added), removed: ids(removed), stale: false });
    }
  }
}
