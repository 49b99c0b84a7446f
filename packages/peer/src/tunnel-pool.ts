// Tunnels to peers, kept for the next call.

import type { Dispatcher } from "undici";
import { formatAddress, type PeerAddress } from "./connection.ts";
import type { FleetKey } from "./core/fleet-key.ts";
import type { RecordsMode } from "./core/records-offer.ts";
import { dialTunnel } from "./dial-tunnel.ts";
import { PeerOptionError, TunnelLostError } from "./errors.ts";
import type { TunnelRoute } from "./tunnel-route.ts";
import { maxIdleMs } from "./wire.ts";

/** A node to call, as its record describes it. */
export interface Peer {
  /** Its identity. */
  readonly node: string;
  readonly address: PeerAddress;
  /** Whether its record advertises records: then a tunnel without them is an error. */
  readonly hasRecords: boolean;
}

export interface TunnelPoolOptions {
  /** Identity of this node or tool: 1 to 128 of `A–Z a–z 0–9 _ - .`. */
  self: string;
  /** The key that signs; a function is asked for each tunnel, so that a rotation swaps it. */
  key: FleetKey | (() => FleetKey);
  /** @default "offered" */
  records?: RecordsMode;
  /** Most idle tunnels for each peer and kind, 0 to 1024. @default 64 */
  idleCount?: number;
  /** How long a tunnel may be idle, 1 to 29000; nodes of cellkit drop it after 15 s, others after 30 s. @default 10000 */
  idleMs?: number;
  /** How long a TCP connection may take. @default 3000 */
  connectTimeoutMs?: number;
  /** This node's wall clock, milliseconds since the Unix epoch. @default Date.now */
  clock?: () => number;
}

const maxIdleCount = 1024;

/** The key that signs now. */
export function keyOf(key: TunnelPoolOptions["key"]): FleetKey {
  return typeof key === "function" ? key() : key;
}

interface KeptRoute {
  readonly peer: Peer;
  readonly kind: "do" | "rpc";
  readonly route: TunnelRoute;
}

/**
 * Keeps tunnels by peer and kind: one call at a time in each, used again once the answer ended cleanly. A tunnel that
 * carried a WebSocket is not used again. A call is never sent twice.
 */
export class TunnelPool implements AsyncDisposable {
  readonly #options: TunnelPoolOptions;
  /** By node; a node has one or two, unless its address changed. */
  readonly #routes = new Map<string, KeptRoute[]>();
  #closed: Promise<void> | undefined;
  #loading: Promise<typeof import("./tunnel-route.ts")> | undefined;

  /** @throws PeerOptionError (CELLKIT_PEER_OPTION) */
  constructor(options: TunnelPoolOptions) {
    const { idleCount = 64, idleMs = 10_000 } = options;
    if (!Number.isInteger(idleCount) || idleCount < 0 || idleCount > maxIdleCount) {
      throw new PeerOptionError("idleCount", `is ${idleCount}: use 0 to ${maxIdleCount}`);
    }
    if (!(idleMs >= 1 && idleMs <= maxIdleMs)) {
      throw new PeerOptionError("idleMs", `is ${idleMs}: use 1 to ${maxIdleMs}`);
    }
    this.#options = { ...options, idleCount, idleMs };
  }

  /**
   * The tunnels to a peer as an undici dispatcher. Inner requests are the caller's to make: absolute URL as `path`, and
   * the control headers. Ask for it each time: it goes when its last tunnel does. undici is loaded for the first one: nodes,
   * which only listen, start without it.
   * @throws TunnelLostError (CELLKIT_PEER_TUNNEL_LOST) after `close`
   */
  async dispatcher(peer: Peer, kind: "do" | "rpc"): Promise<Dispatcher> {
    this.#loading ??= import("./tunnel-route.ts");
    const { TunnelRoute } = await this.#loading;
    if (this.#closed !== undefined) throw new TunnelLostError("the pool is closed");
    const { host, port } = peer.address;
    const routes = this.#routes.get(peer.node) ?? [];
    for (const kept of routes) {
      const isSame = kept.kind === kind && kept.peer.address.port === port && kept.peer.address.host === host;
      if (isSame && kept.peer.hasRecords === peer.hasRecords) return kept.route;
    }
    const route = new TunnelRoute((signal) => this.#dial(peer, kind, signal), {
      where: formatAddress(peer.address),
      idleCount: this.#options.idleCount ?? 0,
      idleMs: this.#options.idleMs ?? maxIdleMs,
      emptied: () => this.#forget(peer.node, route),
    });
    this.#routes.set(peer.node, [...routes, { peer, kind, route }]);
    return route;
  }

  /** Nodes to which there are tunnels. */
  get nodes(): readonly string[] {
    return [...this.#routes.keys()];
  }

  counts(): { tunnels: number; idle: number } {
    const counts = { tunnels: 0, idle: 0 };
    for (const routes of this.#routes.values()) {
      for (const { route } of routes) {
        counts.tunnels += route.tunnelCount;
        counts.idle += route.idleCount;
      }
    }
    return counts;
  }

  /** Cuts every tunnel to a node, as when its lease has lapsed: what is called through them fails at once. */
  cut(node: string): void {
    const routes = this.#routes.get(node);
    this.#routes.delete(node);
    for (const { route } of routes ?? []) void route.destroy(new TunnelLostError(`node ${node} was cut off`));
  }

  /** Ends idle tunnels, and the others once their call is answered. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= Promise.all(this.#all().map((route) => route.close())).then(() => undefined);
    return this.#closed;
  }

  /** Cuts every tunnel. */
  async destroy(): Promise<void> {
    const routes = this.#all();
    this.#closed ??= Promise.resolve();
    await Promise.all(routes.map((route) => route.destroy(new TunnelLostError("the pool was destroyed"))));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #all(): TunnelRoute[] {
    return [...this.#routes.values()].flat().map(({ route }) => route);
  }

  #forget(node: string, gone: TunnelRoute): void {
    const left = this.#routes.get(node)?.filter(({ route }) => route !== gone) ?? [];
    if (left.length === 0) this.#routes.delete(node);
    else this.#routes.set(node, left);
  }

  #dial({ node, address, hasRecords }: Peer, kind: "do" | "rpc", signal: AbortSignal) {
    const { self, key, records, connectTimeoutMs, clock } = this.#options;
    return dialTunnel({
      address,
      kind,
      key: keyOf(key),
      self,
      destination: node,
      peerHasRecords: hasRecords,
      signal,
      ...(records === undefined ? {} : { records }),
      ...(connectTimeoutMs === undefined ? {} : { connectTimeoutMs }),
      ...(clock === undefined ? {} : { clock }),
    });
  }
}
