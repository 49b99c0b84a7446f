// Cells move from a draining node to a healthy one while POSTs come in through the healthy one: none fails, none is lost,
// none counts twice, and no client repeats anything.
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { Fleet } from "./support/fleet.ts";
import { PostLoad } from "./support/post-load.ts";
import type { TestNode } from "./support/test-node.ts";

const handOffCount = inject("size") === "long" ? 20 : 4;
/** Acknowledged POSTs before and after each hand-off, some of them in every room. */
const postsAround = 40;
const rooms = Array.from({ length: 8 }, (_, index) => `room-${index}`);

let fleet: Fleet;
let nodes: TestNode[];

beforeAll(async () => {
  ({ fleet, nodes } = await Fleet.start(2));
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** Starts the node of a place again when it is not there, and answers it. */
async function nodeAt(index: number): Promise<TestNode> {
  let node = nodes[index] as TestNode;
  if (node.process.exit !== undefined) {
    node = await fleet.node(index);
    nodes[index] = node;
  }
  await node.ready();
  return node;
}

it(`${handOffCount} graceful hand-offs under load through the other node: no POST fails, every count is exact`, async () => {
  const load = new PostLoad((await nodeAt(0)).publicUrl, rooms);
  const more = (count: number) => {
    const wanted = load.count + count;
    const had = new Map(rooms.map((room) => [room, load.acknowledged.get(room)?.size ?? 0]));
    const isEnough = () =>
      load.count >= wanted &&
      rooms.every((room) => (load.acknowledged.get(room)?.size ?? 0) > (had.get(room) ?? 0));
    return until("acknowledged POSTs", () => isEnough() || load.failures.length > 0, 60_000);
  };
  await more(postsAround);
  for (let turn = 0; turn < handOffCount && load.failures.length === 0; turn += 1) {
    // The rooms are owned by this node, since all POSTs went through it; from here on they go through the other one.
    const leaving = await nodeAt(turn % 2);
    const staying = await nodeAt((turn + 1) % 2);
    load.target = staying.publicUrl;
    await more(postsAround);
    expect((await leaving.counted())["occupied"]).toBeGreaterThanOrEqual(rooms.length);
    expect(await leaving.drain()).toEqual({ code: 0, signal: null });
    await more(postsAround);
  }
  await load.stop();

  expect(load.failures).toEqual([]);
  const counter = nodes[handOffCount % 2] as TestNode;
  for (const [room, ids] of load.acknowledged) {
    expect(ids.size).toBeGreaterThan(0);
    const { body } = await counter.ask(`/rooms/${room}/ids`);
    expect(body["ids"]).toEqual(Object.fromEntries([...ids].map((id) => [id, 1])));
  }
});
