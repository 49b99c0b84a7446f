/** Claims a loopback alias in the fleet's store, for as long as a node runs. Every write is conditional. */
import { randomUUID } from "node:crypto";
import {
  type AliasClaim,
  aliasesFor,
  aliasGraceMs,
  aliasKey,
  formatAliasClaim,
  maxAliasTries,
  parseAliasClaim,
} from "./core/road-alias.ts";
import { NodeRecordError, RoadAliasError } from "./errors.ts";
import type { FleetStore, FleetWrite } from "./fleet-store.ts";
import { isLive, maxNodeRecordBytes, nodeRecordKey, parseNodeRecord } from "./node-record.ts";

const maxClaimBytes = 4_096;

/** Options of {@link claimRoadAlias}. */
export interface ClaimRoadAliasOptions {
  /** Milliseconds since the Unix epoch. @default Date.now */
  clock?: () => number;
  signal?: AbortSignal | undefined;
}

/** An alias that is this node's until it is given back. */
export interface RoadAlias {
  /** `127.77.x.y`. */
  readonly address: string;
  /** Gives it back if it is still this node's. Call it when nothing advertises it any more. Idempotent. */
  free(): Promise<void>;
}

/**
 * Claims an alias for a node: the one it had before, else one that nobody has or whose node is dead.
 *
 * @throws RoadAliasError (CELLKIT_PEER_ROAD_ALIAS) when 256 in a row are taken, and what the store throws
 */
export async function claimRoadAlias(
  store: FleetStore,
  node: string,
  options: ClaimRoadAliasOptions = {},
): Promise<RoadAlias> {
  const { clock = Date.now, signal } = options;
  for (const address of aliasesFor(node)) {
    const key = aliasKey(address);
    const there = await store.get(key, { maxBytes: maxClaimBytes, signal });
    const claim = there && parseAliasClaim(there.body);
    if (there !== undefined && (claim === undefined || !(await mayTake(store, claim, node, clock(), signal))))
      continue;
    const body = new TextEncoder().encode(
      formatAliasClaim({ node, claimedMs: Math.round(clock()) }, randomUUID()),
    );
    const write =
      there === undefined
        ? await store.createIfAbsent(key, body, { signal })
        : await store.replaceIf(key, body, there.etag, { signal });
    const settled = await settle(write, signal);
    if (settled.kind === "applied") return claimed(store, address, settled.etag);
  }
  throw new RoadAliasError(
    `${maxAliasTries} loopback aliases in a row are taken: look at cellkit/aliases/ in the fleet's bucket`,
  );
}

function claimed(store: FleetStore, address: string, etag: string): RoadAlias {
  let freed: Promise<void> | undefined;
  const free = async (): Promise<void> => {
    // Replaced and not deleted: had another node taken it over, the condition would keep it.
    const body = formatAliasClaim({ node: "", claimedMs: 0 }, randomUUID());
    await settle(await store.replaceIf(aliasKey(address), new TextEncoder().encode(body), etag), undefined);
  };
  return {
    address,
    free: () => {
      freed ??= free();
      return freed;
    },
  };
}

async function settle(
  write: FleetWrite,
  signal: AbortSignal | undefined,
): Promise<Exclude<FleetWrite, { kind: "ambiguous" }>> {
  return write.kind === "ambiguous" ? await write.settle({ signal }) : write;
}

/** Given back, our own from before, or of a node that is dead: its record is gone or out of force, and it is not just starting. */
async function mayTake(
  store: FleetStore,
  claim: AliasClaim,
  node: string,
  nowMs: number,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  if (claim.node === "" || claim.node === node) return true;
  if (claim.claimedMs + aliasGraceMs > nowMs) return false;
  const key = nodeRecordKey(claim.node);
  const record = await store.get(key, { maxBytes: maxNodeRecordBytes, signal });
  if (record === undefined) return true;
  try {
    // The grace, once more, for a clock that is ahead of the node's.
    return !isLive(parseNodeRecord(key, record.body), nowMs - aliasGraceMs);
  } catch (error) {
    // A record that cannot be read does not count as dead.
    if (error instanceof NodeRecordError) return false;
    throw error;
  }
}
