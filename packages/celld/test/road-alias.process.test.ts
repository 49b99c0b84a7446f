// What a node writes of itself for the road, a loopback alias and a record, over its life.
import { claimRoadAlias, NodeDirectory } from "@cellkit/peer";
import { afterEach, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { Fleet } from "./support/fleet.ts";
import type { TestNode } from "./support/test-node.ts";

let fleet: Fleet;
afterEach(() => fleet[Symbol.asyncDispose]());

async function readJson(key: string): Promise<Record<string, unknown> | undefined> {
  const stored = await fleet.bucket.get(key);
  return stored && (JSON.parse(Buffer.from(stored.body).toString()) as Record<string, unknown>);
}

const recordOf = (node: TestNode) => readJson(`nodes/${node.node}.json`);
const claimOf = (alias: string) => readJson(`cellkit/aliases/${alias}.json`);

/** Says that a node claimed an alias long ago. */
async function claim(alias: string, node: string): Promise<void> {
  const body = JSON.stringify({ node, claimed_ms: 0, salt: "test" });
  await fleet.bucket.put(`cellkit/aliases/${alias}.json`, body);
}

/** The alias of a node's record. */
async function aliasOf(node: TestNode): Promise<string> {
  const alias = (await recordOf(node))?.["road_alias"];
  expect(alias).toMatch(/^127\.77\.\d+\.\d+$/);
  return String(alias);
}

it("each node has an alias and a record of its own, renews the record, and takes both away at its stop", async () => {
  const { fleet: started, nodes } = await Fleet.start(3);
  fleet = started;
  const aliases = await Promise.all(nodes.map(aliasOf));
  expect(new Set(aliases).size).toBe(nodes.length);
  for (const [index, node] of nodes.entries()) {
    expect(await recordOf(node)).toMatchObject({ addr: new URL(node.internalUrl).host, node: node.node });
    expect(await claimOf(aliases[index] ?? "")).toMatchObject({ node: node.node });
  }
  const before = await Promise.all(nodes.map(recordOf));
  await until("renewed records", async () => {
    const now = await Promise.all(nodes.map(recordOf));
    return now.every(
      (record, index) => Number(record?.["expires_ms"]) > Number(before[index]?.["expires_ms"]),
    );
  });
  const exits = await Promise.all(nodes.map((node) => node.drain()));
  expect(exits).toEqual(nodes.map(() => ({ code: 0, signal: null })));
  const listing = await new NodeDirectory(fleet.bucket, { cacheMs: 0 }).list();
  expect(listing).toMatchObject({ live: [], expired: [], unreadable: [] });
  for (const alias of aliases) expect(await claimOf(alias)).toMatchObject({ node: "" });
});

it("a node keeps its alias over a kill and a restart, and takes over that of a dead one, but never that of a live one", async () => {
  fleet = await Fleet.open();
  await fleet.deploy();
  // The alias that a node of this name tries first, as it would get it.
  const { address: first, free } = await claimRoadAlias(fleet.bucket, "node-0");
  await free();

  await claim(first, "died-long-ago");
  let node = await fleet.node(0);
  await node.ready();
  expect(await aliasOf(node)).toBe(first);
  await node.kill();
  expect(await claimOf(first)).toMatchObject({ node: "node-0" });
  node = await fleet.node(0);
  await node.ready();
  expect(await aliasOf(node)).toBe(first);
  expect(await node.drain()).toEqual({ code: 0, signal: null });

  const other = await fleet.node(1);
  await other.ready();
  await claim(first, "node-1");
  node = await fleet.node(0);
  await node.ready();
  expect(await aliasOf(node)).not.toBe(first);
  expect(await claimOf(first)).toMatchObject({ node: "node-1" });
});
