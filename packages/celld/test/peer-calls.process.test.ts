// Daemons that are no nodes call cells: through any node, whoever owns the cell, also while a node leaves.
import { PeerClient } from "@cellkit/peer";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { Fleet } from "./support/fleet.ts";
import { clientThrough, keyOf, roomsProject, TunnelledSocket } from "./support/peers.ts";
import type { TestNode } from "./support/test-node.ts";

let fleet: Fleet;
let nodes: TestNode[];
/** One for each node. */
let clients: [PeerClient, PeerClient, PeerClient];

beforeAll(async () => {
  ({ fleet, nodes } = await Fleet.start(3, { project: roomsProject }));
});
beforeEach(async () => {
  for (const [index, node] of nodes.entries()) {
    if (node.process.exit !== undefined) nodes[index] = await fleet.node(index);
    await nodes[index]?.ready();
  }
  clients = (await Promise.all(nodes.map((node) => clientThrough(fleet, node)))) as typeof clients;
  return async () => void (await Promise.all(clients.map((client) => client.close())));
});
afterAll(() => fleet[Symbol.asyncDispose]());

const room = (name: string) => ({ className: "Room", name });

/** Makes a node the owner of a room, and answers the room's boot id. */
async function openRoom(node: TestNode | undefined, name: string): Promise<unknown> {
  return (await node?.ask(`/${name}/open`))?.body["boot"];
}

it("a request reaches every cell through every node, as it was made", async () => {
  for (const [index, owner] of nodes.entries()) {
    const boot = await openRoom(owner, `owned-${index}`);
    for (const client of clients) {
      const answer = await client.fetch(room(`owned-${index}`), "https://rooms.example/a%2Fb?q=1", {
        method: "POST",
        body: "hello",
        headers: { "x-own": "kept" },
      });
      expect(answer.status).toBe(200);
      expect(await answer.json()).toMatchObject({
        boot,
        url: "https://rooms.example/a%2Fb?q=1",
        method: "POST",
        body: "hello",
        headers: { host: "rooms.example", "x-own": "kept" },
      });
    }
  }
});

it("a large body goes both ways", async () => {
  const body = "x".repeat(4 * 1024 * 1024);
  const answer = await clients[1].fetch(room("large"), "http://rooms/", { method: "PUT", body });
  expect(((await answer.json()) as { body: string }).body === body).toBe(true);
});

it("a method is called through every node", async () => {
  const boot = await openRoom(nodes[0], "methods");
  for (const client of clients) {
    expect(await client.rpc(room("methods"), { method: "add", args: [1, 2] })).toEqual({ boot, sum: 3 });
    await expect(client.rpc(room("methods"), { method: "fail" })).rejects.toThrow("the method says no");
  }
});

it("a cell cannot say what only nodes say: what it answers is not repeated, but handed on", async () => {
  const answer = await clients[0].fetch(room("evil"), "http://rooms/evil");
  expect([answer.status, answer.headers.get("x-own"), await answer.text()]).toEqual([409, "kept", "ran"]);
  const after = (await (await clients[0].fetch(room("evil"), "http://rooms/")).json()) as { calls: number };
  expect(after.calls).toBe(2);
});

it("a socket is opened through every node, and takes text both ways", async () => {
  await openRoom(nodes[0], "sockets");
  for (const client of clients) {
    for (const kind of ["regular", "hibernating"]) {
      const opened = await client.connect(room("sockets"), `http://rooms/${kind}`);
      if (opened.kind !== "socket") throw new TypeError(`answered ${opened.response.status}`);
      const socket = new TunnelledSocket(opened);
      expect(socket.headers.get("sec-websocket-protocol")).toBe("chat");
      expect(await socket.ask("hi")).toBe("echo hi");
      socket.end();
    }
  }
});

/** Opens sockets of both kinds to a cell of the first node, through the first and the second node. */
async function openSockets(name: string): Promise<TunnelledSocket[]> {
  await openRoom(nodes[0], name);
  const sockets = [];
  for (const client of clients.slice(0, 2)) {
    for (const kind of ["regular", "hibernating"]) {
      const opened = await client.connect(room(name), `http://rooms/${kind}`);
      if (opened.kind !== "socket") throw new TypeError(`answered ${opened.response.status}`);
      const socket = new TunnelledSocket(opened);
      expect(await socket.ask("hi")).toBe("echo hi");
      sockets.push(socket);
    }
  }
  return sockets;
}

it("the owner drains: each socket gets one close frame, 1012, and its cell answers elsewhere", async () => {
  const sockets = await openSockets("drained");
  const exit = nodes[0]?.drain();
  const closes = await Promise.all(sockets.map((socket) => socket.closes()));
  for (const frames of closes) {
    expect(frames).toHaveLength(1);
    expect(frames[0]?.[0]).toBe(1012);
  }
  const answer = await clients[1].fetch(room("drained"), "http://rooms/");
  expect(answer.status).toBe(200);
  expect((await exit)?.code).toBe(0);
});

it("the owner is killed: each socket gets one close frame, 1012 owner unavailable", async () => {
  const sockets = await openSockets("killed");
  await nodes[0]?.kill();
  const closes = await Promise.all(sockets.map((socket) => socket.closes(90_000)));
  for (const frames of closes) expect(frames).toEqual([[1012, "owner unavailable"]]);
});

it("the owner is killed within an answer: its reader fails, and the call is not made again", async () => {
  await openRoom(nodes[0], "endless");
  const answer = await clients[0].fetch(room("endless"), "http://rooms/endless");
  const reader = answer.body?.getReader();
  expect((await reader?.read())?.done).toBe(false);
  await nodes[0]?.kill();
  const readOn = async () => {
    while ((await reader?.read())?.done === false);
  };
  await expect(readOn()).rejects.toThrow();
  nodes[0] = await fleet.node(0);
  await nodes[0].ready();
  // A new instance, of which this is the first call.
  const { calls } = (await (await clients[1].fetch(room("endless"), "http://rooms/")).json()) as {
    calls: number;
  };
  expect(calls).toBe(1);
});

it("a node that drains keeps serving peers until its workerd has left", async () => {
  await openRoom(nodes[2], "served");
  const draining = nodes[2]?.drain();
  await nodes[2]?.draining();
  expect((await clients[2].fetch(room("served"), "http://rooms/")).status).toBe(200);
  expect((await draining)?.code).toBe(0);
});

it("a drain waits for a call in a tunnel, and not for a tunnel that is kept for the next one", async () => {
  const { fleet: small, nodes: one } = await Fleet.start(1, { project: roomsProject });
  await using _ = small;
  let [node] = one as [TestNode];
  // Until its lease is gone nobody ends workerd, which by itself takes 5 s: on a busy machine the one may be as long. A node
  // that waited for the tunnel would never end it.
  const ends: unknown[] = [];
  while (ends.length < 12 && !ends.includes("SIGKILL")) {
    await using client = await clientThrough(small, node);
    await (await client.fetch(room("idle"), "http://rooms/")).text();
    await until("idle tunnel", () => client.counts().idle === 1);
    expect((await node.drain()).code).toBe(0);
    ends.push((await node.logged("end", ({ msg }) => msg === "workerd ended"))["signal"]);
    node = await small.node(0);
    await node.ready();
  }
  expect(ends).toContain("SIGKILL");

  const next = node;
  await using other = await clientThrough(small, next);
  const call = other.fetch(room("slow"), "http://rooms/slow");
  await until("call", async () => (await next.state())["occupied"] === 1);
  const exit = next.drain();
  expect((await call).status).toBe(200);
  expect((await exit).code).toBe(0);
});

it("every node drains and comes back while calls go on: none fails", async () => {
  await using client = new PeerClient({ store: fleet.bucket, key: await keyOf(fleet), self: "tester" });
  const failures: unknown[] = [];
  let done = false;
  let count = 0;
  const work = async (name: string) => {
    while (!done) {
      try {
        const answer = await client.fetch(room(name), "http://rooms/", { method: "POST", body: name });
        const text = await answer.text();
        if (answer.status !== 200) failures.push(`${answer.status} ${text}`);
      } catch (error) {
        failures.push(error);
      }
      count += 1;
    }
  };
  const working = ["a", "b", "c", "d"].map((name) => work(`rolled-${name}`));
  for (const [index, node] of nodes.entries()) {
    expect((await node.drain()).code).toBe(0);
    nodes[index] = await fleet.node(index);
    await nodes[index]?.ready();
  }
  await until("a hundred calls", () => count > 100, 60_000);
  done = true;
  await Promise.all(working);
  expect(failures).toEqual([]);
});
