// WebSockets when a node leaves: every client gets a close frame (1012), whichever node it is connected to.
import { afterAll, beforeAll, beforeEach, expect, inject, it } from "vitest";
import { timed } from "../../../tools/test-support/timed.ts";
import { until } from "../../../tools/test-support/until.ts";
import { Fleet } from "./support/fleet.ts";
import { RawClient } from "./support/raw-client.ts";
import { SocketClient } from "./support/socket-client.ts";
import type { TestNode } from "./support/test-node.ts";

/** On a machine that is looked at. A cell with a regular socket, or one that still handles a close, is held back for 4 s (half of workerd's stop time). */
const fastHandOffMs = 3_000;
/** Half of them with hibernating, half with regular sockets; enough that some close handlers run when others are done. */
const roomCount = 24;
/** A message may have 32 MiB. */
const tooLongBytes = 33 * 1024 * 1024;

let fleet: Fleet;
let nodes: TestNode[];
let owner: TestNode;
let ingress: TestNode;

beforeAll(async () => {
  ({ fleet, nodes } = await Fleet.start(2));
});
beforeEach(async () => {
  // What the test before took away comes back.
  for (const [index, node] of nodes.entries()) {
    if (node.process.exit !== undefined) nodes[index] = await fleet.node(index);
    await nodes[index]?.ready();
  }
  [owner, ingress] = nodes as [TestNode, TestNode];
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** Opens a room on `node`, which makes that node its owner, and answers the room's boot id. */
async function openRoom(node: TestNode, room: string): Promise<unknown> {
  const { status, body } = await node.ask(`/rooms/${room}/boot`);
  expect(status).toBe(200);
  return body["boot"];
}

it("a message that is too long for workerd ends its socket with workerd's own 1009, not with 1012", async () => {
  await openRoom(owner, "too-long");
  for (const [node, kind] of [
    [owner, "regular"],
    [ingress, "socket"],
    [ingress, "regular"],
  ] as const) {
    const open = () => SocketClient.open(`${node.publicUrl}/rooms/too-long/${kind}`);
    const sockets = await Promise.all([open(), open()]);
    for (const socket of sockets) socket.send("x".repeat(tooLongBytes));
    const closed = await Promise.all(sockets.map((socket) => socket.closed(60_000)));
    expect(closed.map(({ code }) => code)).toEqual([1009, 1009]);
  }
});

it("the owner of cells drains: their sockets get 1012 on every node, and they answer elsewhere at once", async () => {
  const rooms = Array.from({ length: roomCount }, (_, index) => `drained-${index}`);
  const kindOf = (room: string) => (rooms.indexOf(room) % 2 === 0 ? "socket" : "regular");
  const boots = await Promise.all(rooms.map((room) => openRoom(owner, room)));
  const sockets: { room: string; away: SocketClient; here: SocketClient }[] = [];
  for (const room of rooms) {
    const open = (node: TestNode) => SocketClient.open(`${node.publicUrl}/rooms/${room}/${kindOf(room)}`);
    sockets.push({ room, away: await open(ingress), here: await open(owner) });
  }
  const drained = owner.drain();

  const draining = { code: 1012, reason: "node draining" };
  const gone = { code: 1012, reason: "owner unavailable" };
  const { value: moved, ownMs } = await timed(async () => {
    await Promise.all(
      sockets.map(async ({ room, away, here }) => {
        expect(await away.closed()).toEqual(kindOf(room) === "regular" ? draining : gone);
        // Who was told comes back at once, and may meet a cell that is about to move.
        await openRoom(ingress, room);
        expect(await here.closed()).toEqual(draining);
      }),
    );
    return await Promise.all(rooms.map((room) => openRoom(ingress, room)));
  });
  if (inject("size") === "long") expect(ownMs).toBeLessThan(fastHandOffMs);
  expect(await drained).toEqual({ code: 0, signal: null });
  const settled = await Promise.all(rooms.map((room) => openRoom(ingress, room)));
  expect(settled.filter((boot) => boots.includes(boot))).toEqual([]);
  expect(moved).toHaveLength(roomCount);
});

it("the owner of a cell is killed: sockets on a healthy node get 1012 and no 1006", async () => {
  const boot = await openRoom(owner, "killed");
  const sockets = [
    await SocketClient.open(`${ingress.publicUrl}/rooms/killed/socket`),
    await SocketClient.open(`${ingress.publicUrl}/rooms/killed/regular`),
  ];
  expect(sockets.map((socket) => socket.boot)).toEqual([boot, boot]);
  await owner.kill();
  for (const socket of sockets) {
    expect(await socket.closed()).toEqual({ code: 1012, reason: "owner unavailable" });
  }
});

it("sockets at a draining ingress get 1012 `node draining` at once, whoever owns their cells", async () => {
  await openRoom(owner, "stays");
  const sockets = [
    await SocketClient.open(`${ingress.publicUrl}/rooms/stays/socket`),
    await SocketClient.open(`${ingress.publicUrl}/rooms/stays/regular`),
  ];
  const witness = await SocketClient.open(`${owner.publicUrl}/rooms/stays/socket`);
  // An upload holds the drain open until the sockets have been told: they are not kept for its end.
  const held = await RawClient.dial(ingress.port);
  held.send("POST /echo-length HTTP/1.1\r\nHost: chat.example\r\nTransfer-Encoding: chunked\r\n\r\n");
  await until("upload under way", async () => (await ingress.state())["in_flight"] === 1);
  const drained = ingress.drain();
  for (const socket of sockets) {
    expect(await socket.closed()).toEqual({ code: 1012, reason: "node draining" });
  }
  expect(held.ended).toBe(false);
  expect(await held.send("0\r\n\r\n").finish()).toMatch(/^HTTP\/1\.1 200 /);
  expect(await drained).toEqual({ code: 0, signal: null });
  expect(await witness.ask("ping")).toBe("pong");
  expect(witness.close).toBeUndefined();
});
