// A client keeps to its bounds whatever its peers and its callers do.
import { once } from "node:events";
import { createServer } from "node:net";
import type { Duplex } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { dialTunnel } from "../src/dial-tunnel.ts";
import { PeerOptionError } from "../src/errors.ts";
import { webSocketAccept } from "../src/handshake.ts";
import { cell, enter, startFleet } from "./support/fleet.ts";
import { testKey } from "./support/records.ts";

const head = "x-cells-peer-version: 5\r\n";

/** A fleet of one node that does with each tunnel what the test says. */
async function fleetOf(onTunnel: (tunnel: Duplex) => void, options: Parameters<typeof startFleet>[1] = {}) {
  let tunnels = 0;
  const fleet = await startFleet(
    [
      {
        onTunnel: (tunnel) => {
          tunnels += 1;
          tunnel.on("error", () => undefined);
          onTunnel(tunnel);
        },
      },
    ],
    options,
  );
  return { ...fleet, dialled: () => tunnels };
}

/** Answers each request with these bytes. */
const answering = (bytes: string) => (tunnel: Duplex) => void tunnel.on("data", () => tunnel.write(bytes));

test.each<[string, (tunnel: Duplex) => void]>([
  ["speaks before it is asked", (tunnel) => void tunnel.write("x")],
  ["ends its tunnels at once", (tunnel) => void tunnel.end()],
  ["cuts its tunnels at once", (tunnel) => void tunnel.destroy()],
])("a peer that %s is dialled again once", async (_, onTunnel) => {
  const { client, dialled } = await fleetOf(onTunnel);
  await expect(client.fetch(cell, "http://cell/")).rejects.toMatchObject({
    code: expect.stringMatching(/^CELLKIT_PEER_(?:UNREACHABLE|TUNNEL_LOST)$/),
  });
  expect(dialled()).toBeLessThanOrEqual(2);
  await until("no tunnel", () => client.counts().tunnels === 0);
});

test("a tunnel in which bytes came behind an answer is not used again", async () => {
  const answer = `HTTP/1.1 200 OK\r\n${head}content-length: 2\r\n\r\nhi`;
  const { client, dialled } = await fleetOf(answering(answer + answer.replace("hi", "no")));
  for (let i = 0; i < 3; i += 1) {
    const response = await client.fetch(cell, "http://cell/").catch(() => undefined);
    expect(await response?.text().catch(() => "hi")).not.toBe("no");
    await until("no tunnel", () => client.counts().tunnels === 0);
  }
  expect(dialled()).toBe(3);
});

test("an answer with a status that the web does not have is none, and leaves no tunnel", async () => {
  const { client } = await fleetOf(answering(`HTTP/1.1 999 Odd\r\n${head}content-length: 9\r\n\r\nhi`));
  for (let i = 0; i < 3; i += 1) {
    await expect(client.fetch(cell, "http://cell/")).rejects.toMatchObject({
      code: "CELLKIT_PEER_NO_ANSWER",
    });
  }
  await until("no tunnel", () => client.counts().tunnels === 0);
});

const longBody: Parameters<typeof startFleet>[0] = [
  { onFetch: (_, response) => void response.end("x".repeat(500_000)) },
];

test("a body that is read on while its client closes comes whole", async () => {
  const { client } = await startFleet(longBody, { closeGraceMs: 600_000 });
  const response = await client.fetch(cell, "http://cell/");
  const closed = client.close();
  expect((await response.text()).length).toBe(500_000);
  await closed;
});

test("a client that is closed gives bodies that nobody reads a grace, and then cuts them", async () => {
  const { client } = await startFleet(longBody, { closeGraceMs: 50 });
  const unread = await client.fetch(cell, "http://cell/");
  await client.close();
  await expect(unread.text()).rejects.toBeInstanceOf(Error);
});

test("a handshake that is under way while the client closes is rejected, and leaves no socket", async () => {
  const sockets: Duplex[] = [];
  const { client, nodes } = await startFleet([{ onConnect: (_, socket) => void sockets.push(socket) }]);
  const connecting = client.connect(cell, "http://cell/");
  connecting.catch(() => undefined);
  await until("a handshake", () => sockets.length === 1);
  await client.close();
  await expect(connecting).rejects.toMatchObject({ code: "CELLKIT_PEER_TUNNEL_LOST" });
  await until("no socket", () => nodes[0]?.listener.counts().sockets === 0);
  await expect(client.connect(cell, "http://cell/")).rejects.toMatchObject({
    code: "CELLKIT_PEER_TUNNEL_LOST",
  });
});

test("what cannot be sent is told as that, and nothing of it stays", async () => {
  const { client } = await startFleet([{ onFetch: (_, response) => void response.end("x") }]);
  const post = (headers: Record<string, string>) =>
    client.fetch(cell, "http://cell/", { method: "POST", body: "x", headers });
  const wrong: (() => Promise<unknown>)[] = [
    () => client.fetch(cell, "ws://cell/"),
    () => client.connect(cell, "ws://cell/"),
    () => post({ expect: "100-continue" }),
    () => post({ "content-length": "two" }),
    () => post({ "content-length": "2" }),
    () => client.rpc(cell, { method: "no\nname" }),
    () => client.rpc(cell, { method: "name", args: [1n] }),
  ];
  for (const call of wrong) await expect(call()).rejects.toBeInstanceOf(PeerOptionError);
  expect(client.counts().tunnels).toBe(0);
});

test("a method that answers a function is a failure of the method", async () => {
  const errors: unknown[] = [];
  const { client } = await startFleet([
    {
      onError: (error) => void errors.push(error),
      onRpc: async (method) => {
        if (method === "throws") throw new TypeError("for the owner");
        return () => undefined;
      },
    },
  ]);
  await expect(client.rpc(cell, { method: "add" })).rejects.toMatchObject({
    code: "CELLKIT_PEER_RPC_FAILED",
  });
  await expect(client.rpc(cell, { method: "throws" })).rejects.toThrow("the method threw");
  expect(errors).toMatchObject([{ message: "for the owner" }]);
});

test("an RPC whose answer is no JSON got no answer", async () => {
  const { client } = await fleetOf(answering(`HTTP/1.1 200 OK\r\n${head}content-length: 2\r\n\r\nhi`));
  await expect(client.rpc(cell, { method: "add" })).rejects.toMatchObject({ code: "CELLKIT_PEER_NO_ANSWER" });
});

/** A node that takes connections and says nothing. */
async function silentNode() {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.on("error", () => undefined).resume();
    onTestFinished(() => void socket.destroy());
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return { address: { host: "127.0.0.1", port }, connections: () => connections };
}

test("a silent node holds a call until its deadline and no longer", async () => {
  const silent = await silentNode();
  const { client, store } = await startFleet([], { deadlineMs: 150 });
  enter(store, "owner", silent.address);
  enter(store, "owner-2", silent.address);
  // A dialling of the same kind that has all its time: a call that did not mind its deadline would take as long, twice.
  const giveUp = new AbortController();
  let isOver = false;
  const patient = dialTunnel({
    ...silent,
    kind: "do",
    key: testKey,
    self: "caller",
    destination: "owner",
    signal: giveUp.signal,
    answerTimeoutMs: 12_000,
  }).catch(() => {
    isOver = true;
  });
  await until("the patient one", () => silent.connections() === 1);
  await expect(client.fetch(cell, "http://cell/")).rejects.toMatchObject({
    code: "CELLKIT_PEER_UNREACHABLE",
  });
  await expect(client.connect(cell, "http://cell/")).rejects.toMatchObject({
    code: "CELLKIT_PEER_UNREACHABLE",
  });
  expect(isOver).toBe(false);
  giveUp.abort();
  await patient;
  expect(silent.connections()).toBe(3);
  await until("no tunnel", () => client.counts().tunnels === 0);
});

test("a caller that gives up while a silent node is dialled is told so at once", async () => {
  const silent = await silentNode();
  const { client, store } = await startFleet([]);
  enter(store, "owner", silent.address);
  for (const call of ["fetch", "connect"] as const) {
    const controller = new AbortController();
    const waiting = client[call](cell, "http://cell/", { signal: controller.signal });
    waiting.catch(() => undefined);
    await until("the dialling", () => client.counts().tunnels === 1);
    controller.abort(new TypeError("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await until("no tunnel", () => client.counts().tunnels === 0);
  }
});

test("a POST whose body is there goes elsewhere with it when a node is not the owner", async () => {
  const bodies: string[] = [];
  const { client } = await startFleet([
    { onFetch: (_, __, call) => call.answerStale() },
    {
      onFetch: async (request, response) => {
        let body = "";
        for await (const piece of request) body += String(piece);
        bodies.push(body);
        response.end("mine");
      },
    },
  ]);
  for (const body of ["text", new Uint8Array([0x62]), new Blob(["blob"])]) {
    for (let i = 0; i < 2; i += 1) {
      const response = await client.fetch(cell, "http://cell/", { method: "POST", body });
      expect(await response.text()).toBe("mine");
    }
  }
  expect(bodies).toEqual(["text", "text", "b", "b", "blob", "blob"]);
});

test("a listener that is closed cuts open WebSockets after a grace: their clients get 1012", async () => {
  const { client, nodes } = await startFleet([
    {
      socketGraceMs: 30,
      onConnect: (request, socket) => {
        const accept = webSocketAccept(request.headers["sec-websocket-key"] ?? "");
        socket.write(
          `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
        );
      },
    },
  ]);
  const answer = await client.connect(cell, "http://cell/");
  if (answer.kind !== "socket") throw new TypeError("no socket");
  const pieces: Buffer[] = [];
  answer.socket.on("data", (piece: Buffer) => void pieces.push(piece));
  await nodes[0]?.listener.close();
  await until("a close frame", () => Buffer.concat(pieces).toString("latin1").endsWith("owner unavailable"));
  expect([...Buffer.concat(pieces).subarray(0, 4)]).toEqual([0x88, 19, 0x03, 0xf4]);
  answer.socket.destroy();
});
