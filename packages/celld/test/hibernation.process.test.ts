// A ping on a hibernated cell's socket is answered without waking the cell, from another node than its owner too.
//
// How a test can know: eviction is silent, but the owner counts how often a cell was opened, and a cell's boot id is new
// each time. Younger rooms without a ping are asked one after another until one of them turns out to have been evicted; from
// that moment on the pinged room is known to be older than what workerd evicts, if its pings are not activity.
import { afterAll, beforeAll, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { Fleet } from "./support/fleet.ts";
import { SocketClient } from "./support/socket-client.ts";
import type { TestNode } from "./support/test-node.ts";

/** workerd evicts after about 10 s; each room can be asked once, since a question counts as activity. */
const controlRooms = Array.from({ length: 12 }, (_, index) => `control-${index}`);
const firstAskMs = 9_000;
const betweenAsksMs = 1_000;

let fleet: Fleet;
let owner: TestNode;
let ingress: TestNode;

beforeAll(async () => {
  const started = await Fleet.start(2);
  fleet = started.fleet;
  [owner, ingress] = started.nodes as [TestNode, TestNode];
});
afterAll(() => fleet[Symbol.asyncDispose]());

async function bootOf(room: string): Promise<unknown> {
  return (await owner.ask(`/rooms/${room}/boot`)).body["boot"];
}

/** How many cells the owner's workerd has opened. */
async function openedCells(): Promise<number> {
  // Without the line where workerd took more than a second to answer.
  const count = await until("count of opened cells", async () => {
    const text = await (await fetch(`${owner.internalUrl}/metrics`)).text();
    return /^celld_cells_opened\{[^}]*\} (\d+)$/m.exec(text)?.[1];
  });
  return Number(count);
}

it("the ping is answered through another node, and the cell sleeps on", async () => {
  const boots = new Map<string, unknown>();
  for (const room of ["pinged", ...controlRooms]) boots.set(room, await bootOf(room));
  // It is the first in everything: whatever holds this up makes it older than the others, and never younger.
  const pinged = await SocketClient.open(`${ingress.publicUrl}/rooms/pinged/socket`);
  const sockets = [];
  for (const room of controlRooms) {
    sockets.push(await SocketClient.open(`${ingress.publicUrl}/rooms/${room}/socket`));
  }
  const openedMs = performance.now();
  expect(pinged.boot).toBe(boots.get("pinged"));
  expect(await openedCells()).toBe(boots.size);

  const waiting = [...controlRooms];
  let wokenCount = 0;
  await until(
    "eviction of a room that nobody asked",
    async () => {
      expect(await pinged.ask("ping")).toBe("pong");
      if (performance.now() - openedMs < firstAskMs + wokenCount * betweenAsksMs) return false;
      const room = waiting.shift();
      if (room === undefined) throw new Error("no room was evicted");
      wokenCount += 1;
      return (await bootOf(room)) !== boots.get(room);
    },
    90_000,
  );

  const openedBefore = await openedCells();
  expect(await pinged.ask("ping")).toBe("pong");
  expect(await openedCells()).toBe(openedBefore);
  expect(await bootOf("pinged")).not.toBe(boots.get("pinged"));
  expect(await openedCells()).toBe(openedBefore + 1);
  expect(pinged.close).toBeUndefined();
  for (const socket of [...sockets, pinged]) socket.end();
});
