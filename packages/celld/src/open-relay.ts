// The relay of a machine: what a node's workerd sends to a peer's alias goes to that peer's node, in records.
import type { Bucket } from "@cellkit/bucket";
import { ClusterLeases } from "@cellkit/engine";
import { type FleetKeyring, type RoadFailure, RoadRelay } from "@cellkit/peer";

/** What a relay is opened with. */
export interface OpenRelayOptions {
  /** The fleet's bucket; not closed with the relay. */
  readonly bucket: Bucket;
  readonly keyring: FleetKeyring;
  /** Identity that peers see: the node's name, or one of the relay's own. */
  readonly self: string;
  /** The fleet's road port; 0 takes a free one, which the answer tells. */
  readonly port: number;
  /** Whether relays of other processes may have the port too, if they say so as well. @default false */
  readonly shared?: boolean;
  /** Hears of connections that could not be carried, or were cut. */
  readonly onFailure: (failure: RoadFailure) => void;
}

/**
 * Opens the relay. Connections to a peer are cut when its workerd's lease or its own record has lapsed: the one when workerd
 * is frozen, the other when celld is.
 * @throws RoadAliasError (CELLKIT_PEER_ROAD_ALIAS) when the port is taken
 */
export async function openRelay(options: OpenRelayOptions): Promise<{ relay: RoadRelay; port: number }> {
  const { bucket, keyring, self, shared = false, onFailure } = options;
  const leases = new ClusterLeases(bucket);
  let { port } = options;
  const relay = new RoadRelay({
    store: bucket,
    keys: () => keyring.keys,
    self,
    leaseExpiryMs: (alias) => leases.expiryMs(`${alias}:${port}`),
    onFailure,
  });
  port = await relay.listen(port, { shared });
  return { relay, port };
}
