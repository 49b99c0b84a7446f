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
  /** Tunnels of peers to the own workerd, those that are idle at the moment among them. */
  openCount(): number;
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
    const { relay } = await openRelay({ bucket, keyring, self: node, port: roadPort, onFailure });
    defer("the relay", () => relay.close());
  }
  const directory = new NodeDirectory(bucket);
  const open = new Set<Duplex>();
  const track = (tunnel: Duplex) => {
    open.add(tunnel);
    tunnel.once("close", () => open.delete(tunnel));
  };
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
      track(tunnel);
      carryToCluster(tunnel, options.clusterPort());
    },
    onTunnel: (tunnel, { kind }) => {
      track(tunnel);
      carryCalls(tunnel, options.callSocket(kind === "rpc" ? "rpc" : "do"));
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
    }),
    {
      signal,
      onLost: (error) => fail(error),
      onFailure: tell("the node's record could not be renewed; it is tried again"),
    },
  );
  defer("the node's record", () => registration.close());
  renew = () => void registration.renew().catch(tell("the node's record does not show its keys yet"));
  // A rotation that looked before the record was there did not wait for this node.
  await keyring.refresh({ signal });
  return {
    advertise: `${alias.address}:${roadPort}`,
    keyring,
    listener,
    olderVerifier: new RequestVerifier({ self: node, keys, version: 2, notBeforeMs }),
    directory,
    openCount: () => open.size,
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
