/**
 * The dialling end of the road between nodes. An engine's process dials a peer at its loopback alias; the relay that
 * listens there finds the peer by its records and carries the bytes through a tunnel of kind `cluster`, in records.
 *
 * One port serves all aliases, also those of nodes that come later. Several relays of one machine can share the port, and the
 * kernel deals connections out among them; each carries for all. A relay that ends cuts what it carries, so nodes that share
 * a machine should share one relay that outlives them.
 */
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { carry, cut } from "./carry.ts";
import type { FleetKey } from "./core/fleet-key.ts";
import { recordsExtension } from "./core/records-offer.ts";
import { aliasKey, parseAliasClaim, roadAliasOf } from "./core/road-alias.ts";
import { dialTunnel } from "./dial-tunnel.ts";
import { NodeRecordError, RoadAliasError } from "./errors.ts";
import type { FleetStore } from "./fleet-store.ts";
import { LeaseWatch } from "./lease-watch.ts";
import {
  isLive,
  maxNodeRecordBytes,
  type NodeRecord,
  nodeRecordKey,
  parseNodeRecord,
} from "./node-record.ts";
import { parsePeerAddress } from "./peer-address.ts";

/** Options of {@link RoadRelay}. */
export interface RoadRelayOptions {
  store: FleetStore;
  /** Asked for each tunnel: the first key signs. */
  keys: () => readonly [FleetKey, ...FleetKey[]];
  /** Identity of the dialling node, or of the machine's relay. */
  self: string;
  /**
   * Until when the engine's process behind an alias has its lease, in milliseconds since the Unix epoch; undefined when it
   * has none. Once the lease has lapsed, connections to it are cut: it may not own anything any more, and a frozen one
   * would let its callers wait. Asked when the last answer is over. The node's own record counts likewise, with or without
   * this: a frozen node carries nothing, however well its engine lives. @default only the record counts
   */
  leaseExpiryMs?: (alias: string) => Promise<number | undefined>;
  /**
   * How long a node's record may be out of force before connections to the node are cut: a node that could not write while
   * the store was away does so within this once the store is back. @default 15_000
   */
  recordGraceMs?: number;
  /** Connections carried at the same time, more are closed at once. @default 10_000 */
  maxConnectionCount?: number;
  /** Hears of a connection that could not be carried, or was cut. @default nobody */
  onFailure?: (failure: RoadFailure) => void;
  /** Milliseconds since the Unix epoch. @default Date.now */
  clock?: () => number;
}

/** An engine's lease (20 s) ends first where the whole node is frozen: then another node serves the call that is repeated. */
const defaultRecordGraceMs = 15_000;

/** A connection of the road that ended badly. */
export interface RoadFailure {
  readonly alias: string;
  readonly error: unknown;
}

/** Carries connections to loopback aliases to the nodes that have them. */
export class RoadRelay implements AsyncDisposable {
  readonly #options: RoadRelayOptions;
  readonly #clock: () => number;
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  readonly #watches: readonly { of: string; watch: LeaseWatch }[];
  /** Since when the record of the node behind an alias has been seen out of force. */
  readonly #outOfForceMs = new Map<string, number>();
  readonly #stopping = new AbortController();

  constructor(options: RoadRelayOptions) {
    this.#options = options;
    this.#clock = options.clock ?? Date.now;
    const { leaseExpiryMs } = options;
    const watch = (expiryMs: (alias: string) => Promise<number | undefined>) =>
      new LeaseWatch({ expiryMs, clock: this.#clock });
    this.#watches = [
      { of: "the record of the node", watch: watch((alias) => this.#recordExpiryMs(alias)) },
      ...(leaseExpiryMs === undefined
        ? []
        : [{ of: "the lease of the process", watch: watch(leaseExpiryMs) }]),
    ];
    this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, (socket) =>
      this.#accept(socket),
    );
  }

  /** Connections that are being carried. */
  get connectionCount(): number {
    return this.#open.size;
  }

  /**
   * Listens for every alias on one port of all addresses (0.0.0.0); 0 takes a free one. Answers the port. A connection to
   * any other address than an alias is reset.
   *
   * @param options `shared`: with others that share it too, on Linux only. @default false
   * @throws RoadAliasError (CELLKIT_PEER_ROAD_ALIAS) when somebody has the port, or one who does not share it
   */
  async listen(port: number, { shared = false }: { shared?: boolean } = {}): Promise<number> {
    const reusePort = shared && process.platform === "linux";
    this.#server.listen({ host: "0.0.0.0", port, reusePort, backlog: 4096 });
    try {
      await once(this.#server, "listening");
    } catch (cause) {
      const reason = (cause as NodeJS.ErrnoException).code ?? "unknown error";
      throw new RoadAliasError(
        `the relay of the road cannot listen on port ${port} (${reason}): ${portAdvice(shared)}`,
        { cause },
      );
    }
    this.#server.on("error", (error) => this.#options.onFailure?.({ alias: "", error }));
    const bound = this.#server.address();
    return typeof bound === "object" && bound !== null ? bound.port : port;
  }

  /** Takes no new connections and cuts the open ones. Idempotent. */
  async close(): Promise<void> {
    this.#stopping.abort();
    this.#server.close();
    for (const { watch } of this.#watches) watch.close();
    for (const socket of this.#open) cut(socket);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #accept(socket: Socket): void {
    socket.on("error", () => undefined);
    const alias = roadAliasOf(socket.localAddress);
    const { maxConnectionCount = 10_000 } = this.#options;
    if (alias === undefined || this.#open.size >= maxConnectionCount) {
      cut(socket);
      return;
    }
    this.#open.add(socket);
    socket.once("close", () => this.#open.delete(socket));
    this.#carry(socket, alias).catch((error: unknown) => {
      cut(socket);
      if (!this.#stopping.signal.aborted) this.#options.onFailure?.({ alias, error });
    });
  }

  async #carry(socket: Socket, alias: string): Promise<void> {
    const tunnel = await this.#dial(alias, this.#stopping.signal);
    if (socket.destroyed) {
      tunnel.destroy();
      return;
    }
    const stops = this.#watches.map(({ of, watch }) =>
      watch.watch(alias, () => {
        forget();
        cut(socket);
        const error = new RoadAliasError(`${of} behind ${alias} has lapsed: its connections are cut`);
        this.#options.onFailure?.({ alias, error });
      }),
    );
    const forget = () => {
      for (const stop of stops) stop();
    };
    carry(socket, tunnel, {
      closed: forget,
      failed: (error) => this.#options.onFailure?.({ alias, error }),
    });
  }

  async #dial(alias: string, signal: AbortSignal): Promise<Duplex> {
    const record = await this.#recordOf(alias, signal);
    if (!isLive(record, this.#clock())) throw notLive(record.node, alias);
    const [key] = this.#options.keys();
    return dialTunnel({
      address: parsePeerAddress(record.addr),
      kind: "cluster",
      key,
      self: this.#options.self,
      destination: record.node,
      records: "required",
      peerHasRecords: record.extensions.includes(recordsExtension),
      signal,
      clock: this.#clock,
    });
  }

  /** The record of the node that has the alias by that record too: a claim alone could be an old one. */
  async #recordOf(alias: string, signal: AbortSignal): Promise<NodeRecord> {
    const { store } = this.#options;
    const stored = await store.get(aliasKey(alias), { signal });
    const claim = stored && parseAliasClaim(stored.body);
    if (claim === undefined || claim.node === "") throw new RoadAliasError(`no node has the alias ${alias}`);
    const key = nodeRecordKey(claim.node);
    const there = await store.get(key, { maxBytes: maxNodeRecordBytes, signal });
    const record = there && parseNodeRecord(key, there.body);
    if (record?.roadAlias !== alias || record.addr === "") throw notLive(claim.node, alias);
    return record;
  }

  /** Until when the record counts; undefined when there is none. One that cannot be read proves nothing. */
  async #recordExpiryMs(alias: string): Promise<number | undefined> {
    let expiresMs: number;
    try {
      ({ expiresMs } = await this.#recordOf(alias, this.#stopping.signal));
    } catch (error) {
      if (error instanceof RoadAliasError) return undefined;
      if (error instanceof NodeRecordError) return Number.POSITIVE_INFINITY;
      throw error;
    }
    const nowMs = this.#clock();
    const sinceMs = this.#outOfForceMs.get(alias) ?? nowMs;
    const untilMs = sinceMs + (this.#options.recordGraceMs ?? defaultRecordGraceMs);
    if (isLive({ expiresMs }, nowMs) || untilMs <= nowMs) this.#outOfForceMs.delete(alias);
    else this.#outOfForceMs.set(alias, sinceMs);
    return isLive({ expiresMs }, nowMs) ? expiresMs : untilMs;
  }
}

function notLive(node: string, alias: string): RoadAliasError {
  return new RoadAliasError(`the node ${node}, which claimed the alias ${alias}, is not live under it`);
}

/** What to do when the port cannot be had. */
function portAdvice(shared: boolean): string {
  return shared
    ? "start nodes beside a `cellkit road` with --no-road-relay; else free it, or give the whole fleet another --road-port"
    : "one relay is enough for a machine, and it shares with no node that relays (--no-road-relay); free it, or give the whole fleet another one";
}
