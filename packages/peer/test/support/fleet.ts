// A fleet of a test: nodes with records in a store, and a client to it.
import { onTestFinished } from "vitest";
import { formatNodeRecord, nodeRecordKey } from "../../src/node-record.ts";
import { PeerClient, type PeerClientOptions } from "../../src/peer-client.ts";
import type { PeerListenerOptions } from "../../src/peer-listener.ts";
import { MemoryStore } from "./memory-store.ts";
import { startNode, type TestNode } from "./node.ts";
import { nodeRecord } from "./node-record.ts";
import { testKey } from "./records.ts";

export interface TestFleet {
  store: MemoryStore;
  client: PeerClient;
  nodes: TestNode[];
}

export const cell = { className: "Counter", name: "a" } as const;
const livesMs = 600_000;

/** Puts a node's record into the store. */
export function enter(
  store: MemoryStore,
  node: string,
  address: { host: string; port: number },
  expiresMs?: number,
) {
  const addr = `${address.host}:${address.port}`;
  const record = nodeRecord({ node, addr, expiresMs: expiresMs ?? Date.now() + livesMs });
  store.put(nodeRecordKey(node), formatNodeRecord(record));
}

/** Starts a node for each of the options, named `owner`, `owner-2`, …, and a client. */
export async function startFleet(
  options: Partial<PeerListenerOptions>[],
  clientOptions: Partial<PeerClientOptions> = {},
): Promise<TestFleet> {
  const store = new MemoryStore();
  const nodes: TestNode[] = [];
  for (const [i, given] of options.entries()) {
    const self = i === 0 ? "owner" : `owner-${i + 1}`;
    const node = await startNode({ self, ...given });
    enter(store, self, node.address);
    nodes.push(node);
  }
  const client = new PeerClient({ store, key: testKey, self: "caller", script: "app", ...clientOptions });
  onTestFinished(() => client.close());
  return { store, client, nodes };
}
