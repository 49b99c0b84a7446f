// A call to a fleet in which every node serves every cell: which node is tried, and when another one is (spec §8).

import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { recordsExtension } from "./core/records-offer.ts";
import { decideRetry, type RetryClass, retryClassOf, routeBackoffMs } from "./core/retry-class.ts";
import { NoLiveNodeError, PeerUnreachableError, StaleOwnerError, TunnelRefusedError } from "./errors.ts";
import type { NodeDirectory } from "./node-directory.ts";
import type { NodeRecord } from "./node-record.ts";
import { parsePeerAddress } from "./peer-address.ts";
import type { Peer } from "./tunnel-pool.ts";
import { tunnelVersionText } from "./wire.ts";

/** What an attempt has for its tunnel at least, however short the call's deadline is. */
const leastDialMs = 1_000;

/** How a call goes about its attempts. */
export interface AttemptOptions {
  /** How long it may look for an owner. */
  deadlineMs: number;
  signal: AbortSignal | undefined;
  /** Whether a part of the body was sent: then nothing is repeated. */
  bodyStarted: () => boolean;
}

/**
 * Makes the call, and makes it again where a failure proves that no handler ran.
 * @param attempt is told when it has to have a tunnel, by `performance.now()`
 * @throws what the last attempt threw, NoLiveNodeError (CELLKIT_PEER_NO_LIVE_NODE), the signal's reason
 */
export async function attemptCall<Answer>(
  nodes: NodeDirectory,
  attempt: (peer: Peer, endMs: number) => Promise<Answer>,
  { deadlineMs, signal, bodyStarted }: AttemptOptions,
): Promise<Answer> {
  const endMs = performance.now() + deadlineMs;
  const done = { notOwner: 0, neverConnected: 0 };
  const failed = new Set<string>();
  for (;;) {
    const record = await pick(nodes, failed, signal);
    try {
      return await attempt(peerOf(record), Math.max(endMs, performance.now() + leastDialMs));
    } catch (error) {
      signal?.throwIfAborted();
      const failure = failureOf(error);
      const decision = decideRetry({ version: 5, failure, done, bodyStarted: bodyStarted() });
      if (decision === "fail") throw error;
      nodes.forget();
      failed.add(record.node);
      if (failure === "never-connected") {
        // A timer may be a millisecond early.
        if (performance.now() + 1 >= endMs) throw error;
        done.neverConnected += 1;
        continue;
      }
      const waitMs = routeBackoffMs(done.notOwner);
      done.notOwner += 1;
      if (performance.now() + waitMs >= endMs) throw error;
      await sleep(waitMs, undefined, { signal });
    }
  }
}

/** What a failure of an attempt proves. */
function failureOf(error: unknown): RetryClass {
  if (error instanceof PeerUnreachableError) return retryClassOf({ connected: false });
  const isStale =
    error instanceof StaleOwnerError || (error instanceof TunnelRefusedError && error.staleOwner);
  return isStale
    ? retryClassOf({ connected: true, status: 409, staleMarker: true })
    : retryClassOf({ connected: true });
}

/** A node that did not fail in this call, or, when all did, any. */
async function pick(
  nodes: NodeDirectory,
  failed: Set<string>,
  signal: AbortSignal | undefined,
): Promise<NodeRecord> {
  const peerProtocol = Number(tunnelVersionText);
  try {
    return await nodes.pick({ except: failed, peerProtocol, signal });
  } catch (error) {
    if (!(error instanceof NoLiveNodeError) || failed.size === 0) throw error;
    failed.clear();
    return nodes.pick({ peerProtocol, signal });
  }
}

function peerOf({ node, addr, extensions }: NodeRecord): Peer {
  return { node, address: parsePeerAddress(addr), hasRecords: extensions.includes(recordsExtension) };
}
