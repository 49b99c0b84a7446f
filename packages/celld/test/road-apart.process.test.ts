// Nodes that share nothing but the network and the bucket, each in a network namespace: what the road needs, and what it does
// without the fleet's key, or without a relay.
import { FleetKey, formatFleetKey } from "@cellkit/peer";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Fleet, type NodeSettings } from "./support/fleet.ts";
import { KeySwap } from "./support/key-swap.ts";
import { mirrorProject } from "./support/mirror-load.ts";
import { type Namespace, Network, whyNoNetwork } from "./support/network.ts";
import type { TestNode } from "./support/test-node.ts";

const missing = await whyNoNetwork();
const why = missing === undefined ? "" : ` (not run: ${missing})`;

describe.skipIf(missing !== undefined)(`nodes in network namespaces${why}`, () => {
  let network: Network;
  let fleet: Fleet;
  let places: Namespace[];
  let nodes: TestNode[];

  beforeAll(async () => {
    network = await Network.open();
    fleet = await Fleet.open({ host: network.host });
    await fleet.deploy(mirrorProject);
    places = [await network.namespace(), await network.namespace(), await network.namespace()];
    nodes = [await start(0), await start(1)];
  });
  afterAll(async () => {
    await fleet?.[Symbol.asyncDispose]();
    await network?.[Symbol.asyncDispose]();
  });

  async function start(index: number, settings: NodeSettings = {}): Promise<TestNode> {
    const node = await fleet.node(index, { relay: "own", ...places[index], ...settings });
    await node.ready();
    return node;
  }

  /** Whether a node serves a cell. A call that is not answered at all within the bound throws. */
  async function serves(node: TestNode, cell: string): Promise<boolean> {
    const answer = await fetch(`${node.publicUrl}/cells/${cell}/facts`, {
      signal: AbortSignal.timeout(60_000),
    });
    await answer.body?.cancel();
    expect([200, 500]).toContain(answer.status);
    return answer.status === 200;
  }

  /** Gives each of two nodes a cell; answers whether each serves the other's. */
  async function reach(one: TestNode, other: TestNode, turn: string): Promise<[boolean, boolean]> {
    const cellOf = (node: TestNode) => `${turn}-of-${node.node}`;
    for (const node of [one, other]) expect(await serves(node, cellOf(node))).toBe(true);
    return await Promise.all([serves(one, cellOf(other)), serves(other, cellOf(one))]);
  }

  it("with the key and a relay of its own, each serves the cells of the other", async () => {
    const [one, other] = nodes as [TestNode, TestNode];
    expect(await reach(one, other, "whole")).toEqual([true, true]);
  });

  it("a node without a relay reaches no cell of another node, though its own are reached; with one it does", async () => {
    const [one] = nodes as [TestNode];
    const without = await start(2, { relay: "none" });
    expect(await reach(one, without, "without-relay")).toEqual([true, false]);
    await without.kill();
    const withRelay = await start(2);
    expect(await reach(one, withRelay, "with-relay")).toEqual([true, true]);
    await withRelay.kill();
  });

  it("a node that has another key is refused by the road in both directions; with the fleet's it is not", async () => {
    const [one, other] = nodes as [TestNode, TestNode];
    const key = formatFleetKey(new FleetKey(Buffer.alloc(32, 7)));
    await using store = await KeySwap.open(fleet.store.endpoint, { host: network.host, key });
    const stranger = await start(2, { endpoint: store.endpoint });
    expect(await reach(one, stranger, "strange")).toEqual([false, false]);
    for (const [node, peer] of [
      [one, stranger],
      [stranger, one],
    ] as const) {
      const line = await node.logged(
        "refusal",
        ({ msg, err }) =>
          msg === "a connection to a peer ended" &&
          (err as { code?: string } | undefined)?.code === "CELLKIT_PEER_TUNNEL_REFUSED",
      );
      expect(JSON.stringify(line)).toContain(peer.host);
      expect(JSON.stringify(line)).toContain("401");
    }
    expect(await reach(one, other, "beside-it")).toEqual([true, true]);
    await stranger.kill();
    expect(await reach(one, await start(2), "again")).toEqual([true, true]);
  });
});
