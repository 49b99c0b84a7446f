// A node's place in its fleet: its key, its loopback alias and its record, the listener for tunnels of peers, and the relay
// through which the own workerd reaches them.
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import type { Bucket } from "@cellkit/bucket";
import type { DaemonContext } from "@cellkit/daemon";
import {
  carry,
  carryCalls,
  claimRoadAlias,
  type FleetKeyring,
  type NodeDescription,
  NodeDirectory,
  openFleetKeyring,
  type PeerListener,
  peerListener,
  RequestVerifier,
  type RoadFailure,
  recordsExtension,
  registerNode,
} from "@cellkit/peer";
import { CallWatch } from "./call-watch.ts";
import { openRelay } from "./open-relay.ts";

/** What a node joins its fleet with. */
export interface JoinOptions {
  readonly bucket: Bucket;
  readonly node: string;
  /** What the node's record says beside what this file knows. */
  readonly describe: () => Pick<NodeDescription, "addr" | "probePublicKey" | "load">;
  /** Port of the relays, the same one in the whole fleet. */
  readonly roadPort: number;
  /** Whether this process relays, or leaves that to another one on its machine. */
  readonly relays: boolean;
  /** Whether peers had better call this node than another: not while it starts or drains. */
  readonly serving: () => boolean;
  /** Loopback port of the own workerd's cluster listener, while there is one. */
  readonly clusterPort: () => number | undefined;
  /** The own workerd's unix sockets for tunnels of kind `do` and `rpc`, while it serves. */
  readonly callSocket: (kind: "do" | "rpc") => string | undefined;
}

/** A node in its fleet. */
export interface FleetRoad {
  /** `alias:port`, which the own workerd advertises. */
  readonly advertise: string;
  readonly keyring: FleetKeyring;
  readonly listener: PeerListener;
  /** Judges probes of the older generation of the protocol; the newer one's calls are judged by the listener's. */
  readonly olderVerifier: RequestVerifier;
  /** Where the other nodes are. */
  readonly directory: NodeDirectory;
  /** What a drain waits for: connections of peers' workerds to the own one, and calls inside the other tunnels. */
  openCount(): number;
  /** Writes the node's record now: something that it says has changed. */
  renew(): void;
}

/**
 * Joins the fleet: reads or makes its key, claims an alias, opens the relay, writes the node's record. What it takes is
 * given back with the daemon's other parts.
 *
 * @throws PeerError, BucketError
 */
export async function joinFleet(
  options: JoinOptions,
  { log, signal, defer, fail }: DaemonContext<unknown>,
): Promise<FleetRoad> {
  const { bucket, node, roadPort } = options;
  const tell = (message: string) => (error: unknown) => void log.warn({ err: error }, message);
  let renew = () => {};
  const [keyring, alias] = await Promise.all([
    openFleetKeyring(bucket, {
      create: true,
      signal,
      onChange: () => renew(),
      onFailure: tell("the fleet key could not be read again; the one that was read stays"),
    }),
    claimRoadAlias(bucket, node, { signal }),
  ]);
  defer("the fleet key", () => keyring.close());
  defer("the loopback alias", () => alias.free());
  if (options.relays) {
    const onFailure = ({ alias, error }: RoadFailure) =>
      log.warn({ err: error, alias }, "a connection to a peer ended");
    const { relay } = await openRelay({
      bucket,
      keyring,
      self: node,
      port: roadPort,
      shared: true,
      onFailure,
    });
    defer("the relay", () => relay.close());
  }
  const directory = new NodeDirectory(bucket);
  const cluster = new Set<Duplex>();
  const calls = new Set<CallWatch>();
  const keys = () => keyring.keys;
  // The node's name may be that of a former process: what that one accepted is not played to this one.
  const notBeforeMs = performance.timeOrigin;
  const listener = peerListener({
    self: node,
    keys,
    verifier: new RequestVerifier({ self: node, keys, version: 5, notBeforeMs }),
    records: "offered",
    sourceHasRecords: async (source) =>
      (await directory.find(source))?.extensions.includes(recordsExtension) ?? false,
    onCluster: (tunnel) => {
      cluster.add(tunnel);
      tunnel.once("close", () => cluster.delete(tunnel));
      carryToCluster(tunnel, options.clusterPort());
    },
    onTunnel: (tunnel, { kind }) => {
      const watch = new CallWatch();
      calls.add(watch);
      tunnel.once("close", () => calls.delete(watch));
      carryCalls(tunnel, options.callSocket(kind === "rpc" ? "rpc" : "do"), watch);
    },
  });
  defer("the tunnels of peers", () => listener.destroy());
  const registration = await registerNode(
    bucket,
    () => ({
      ...options.describe(),
      node,
      peerProtocol: 5,
      extensions: [recordsExtension],
      peerKeys: keyring.shown,
      roadAlias: alias.address,
      serving: options.serving(),
    }),
    {
      signal,
      onLost: (error) => fail(error),
      onFailure: tell("the node's record could not be renewed; it is tried again"),
    },
  );
  defer("the node's record", () => registration.close());
  renew = () => void registration.renew().catch(tell("the node's record does not say yet what has changed"));
  // A rotation that looked before the record was there did not wait for this node.
  await keyring.refresh({ signal });
  return {
    advertise: `${alias.address}:${roadPort}`,
    keyring,
    listener,
    olderVerifier: new RequestVerifier({ self: node, keys, version: 2, notBeforeMs }),
    directory,
    openCount: () => cluster.size + [...calls].filter(({ busy }) => busy).length,
    renew,
  };
}

/** Carries a tunnel of a peer's workerd to the own one. */
function carryToCluster(tunnel: Duplex, port: number | undefined): void {
  if (port === undefined) {
    tunnel.destroy();
    return;
  }
  carry(tunnel, connect({ host: "127.0.0.1", port, noDelay: true, allowHalfOpen: true }));
}
