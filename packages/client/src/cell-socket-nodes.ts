// The fleet's nodes as a socket sees them: what sockets learn, HTTP calls know, and the other way round.
import type { ResponseHeaders } from "./core/drain-marker.ts";
import type { SocketNode, SocketNodes } from "./core/socket-nodes.ts";
import type { FleetNode } from "./fleet-node.ts";
import { type FleetNodes, nodesOf } from "./fleet-nodes.ts";

/** @throws TypeError when `fleet` is not a `Fleet` of this copy of the package */
export function socketNodesOf(fleet: object): SocketNodes {
  return new FleetSocketNodes(nodesOf(fleet));
}

class FleetSocketNodes implements SocketNodes {
  readonly #nodes: FleetNodes;

  constructor(nodes: FleetNodes) {
    this.#nodes = nodes;
  }

  get authority(): URL {
    return this.#nodes.authority;
  }

  get tls(): object {
    return this.#nodes.connectOptions;
  }

  get closed(): boolean {
    return this.#nodes.signal.aborted;
  }

  now(): number {
    return this.#nodes.clock.now();
  }

  random(): number {
    return this.#nodes.clock.random();
  }

  ready(): Promise<void> {
    return this.#nodes.ready();
  }

  pick(excluded: ReadonlySet<string>): SocketNode | undefined {
    const node = this.#nodes.pick(this.#named(excluded)) ?? this.#earliestBack(excluded);
    return node === undefined || excluded.has(node.id) ? undefined : new WatchedNode(this.#nodes, node);
  }

  hasOther(id: string): boolean {
    return this.#nodes.hasOther(this.#named(new Set([id])));
  }

  isDrainRefusal(status: number, headers: ResponseHeaders, body: string): boolean {
    const { marker } = this.#nodes;
    const weight = marker.weigh(status, headers);
    return weight === "yes" || (weight === "body" && marker.matches(status, headers, body));
  }

  #named(ids: ReadonlySet<string>): Set<FleetNode> {
    return new Set(this.#nodes.all.filter(({ id }) => ids.has(id)));
  }

  /** When every node is set aside: the one that announced the earliest return, once that time has come. */
  #earliestBack(excluded: ReadonlySet<string>): FleetNode | undefined {
    const nowMs = this.now();
    let earliest: FleetNode | undefined;
    for (const node of this.#nodes.all) {
      const { notBeforeMs } = node.state;
      if (excluded.has(node.id) || notBeforeMs > nowMs) continue;
      if (earliest === undefined || notBeforeMs < earliest.state.notBeforeMs) earliest = node;
    }
    return earliest;
  }
}

class WatchedNode implements SocketNode {
  readonly #nodes: FleetNodes;
  readonly #node: FleetNode;

  constructor(nodes: FleetNodes, node: FleetNode) {
    this.#nodes = nodes;
    this.#node = node;
  }

  get id(): string {
    return this.#node.id;
  }

  get url(): URL {
    return this.#node.url;
  }

  get leaving(): boolean {
    const { name } = this.#node.state;
    return name === "draining" || name === "unhealthy";
  }

  drained(retryAfterMs: number): void {
    this.#nodes.reportDrain(this.#node, retryAfterMs);
  }

  unreachable(): void {
    this.#nodes.reportFailure(this.#node);
  }

  answered(): void {
    this.#nodes.reportAnswer(this.#node);
  }

  probe(): void {
    this.#nodes.probeSoon(this.#node);
  }

  dialling(): () => void {
    this.#node.inflight += 1;
    let dialling = true;
    return () => {
      if (dialling) this.#node.inflight -= 1;
      dialling = false;
    };
  }

  watch(changed: () => void): () => void {
    const unwatch = this.#nodes.watch(this.#node);
    const unsubscribe = this.#nodes.onChange(({ node }) => {
      if (node === this.#node) changed();
    });
    return () => {
      unwatch();
      unsubscribe();
    };
  }
}
