// Several nodes on one machine without `cellkit road` beside them: each relays, on one port that they share.
import { afterAll, beforeAll, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { Fleet } from "./support/fleet.ts";
import type { TestNode } from "./support/test-node.ts";

let fleet: Fleet;
let nodes: TestNode[];

beforeAll(async () => {
  ({ fleet, nodes } = await Fleet.start(2, { relay: "own" }));
});
afterAll(() => fleet[Symbol.asyncDispose]());

async function statusOf(node: TestNode, room: string): Promise<number> {
  return (await node.ask(`/rooms/${room}/count`)).status;
}

it("every node serves the cells of every node", async () => {
  for (const owner of nodes) {
    const room = `of-${owner.node}`;
    expect(await statusOf(owner, room)).toBe(200);
    for (const node of nodes) expect(await statusOf(node, room)).toBe(200);
  }
});

it("one of them is restarted: the cells of both are served by both again", async () => {
  const [staying, leaving] = nodes as [TestNode, TestNode];
  expect(await leaving.drain()).toEqual({ code: 0, signal: null });
  for (const room of ["of-node-0", "of-node-1"]) expect(await statusOf(staying, room)).toBe(200);
  const back = await fleet.node(1, { relay: "own" });
  await back.ready();
  expect(await statusOf(back, "back")).toBe(200);
  // A connection that the relay of the ended node carried may still be found dead by its first call.
  for (const [node, room] of [
    [back, "of-node-0"],
    [staying, "back"],
  ] as const) {
    await until("answer through the other node", async () => (await statusOf(node, room)) === 200);
  }
});
