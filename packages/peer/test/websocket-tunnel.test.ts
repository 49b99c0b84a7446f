import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { Duplex } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { until } from "../../../tools/test-support/until.ts";
import type { PeerClient } from "../src/peer-client.ts";
import type { PeerListenerOptions } from "../src/peer-listener.ts";
import { cell, startFleet } from "./support/fleet.ts";

/** Handles sockets of a cell with the ws library, as a daemon would. */
function cellSockets(connected: (socket: WebSocket, raw: Duplex) => void): Partial<PeerListenerOptions> {
  const sockets = new WebSocketServer({ noServer: true });
  return {
    onConnect: (request, raw, head) => {
      sockets.handleUpgrade(request, raw, head, (socket) => connected(socket, raw));
    },
  };
}

/** A public listener that splices each client's socket to the cell, as an ingress node does. */
async function startIngress(client: PeerClient): Promise<string> {
  const server: Server = createServer();
  server.on("upgrade", async (request, socket) => {
    socket.on("error", () => undefined);
    const { upgrade, connection, host, ...headers } = request.headers;
    const answer = await client.connect(cell, `http://${host}${request.url}`, {
      headers: headers as Record<string, string>,
    });
    if (answer.kind === "response") {
      socket.end(`HTTP/1.1 ${answer.response.status} Refused\r\n\r\n${await answer.response.text()}`);
      return;
    }
    const lines = [...answer.headers].map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n${lines.join("")}\r\n`,
    );
    answer.socket.on("error", () => undefined);
    answer.socket.pipe(socket).pipe(answer.socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  return `ws://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}/room`;
}

/** A client that keeps what it hears. */
async function open(url: string, protocols: string[] = []) {
  const socket = new WebSocket(url, protocols);
  const heard = { messages: [] as string[], closes: [] as string[] };
  socket.on("message", (data) => heard.messages.push(String(data)));
  socket.on("close", (code, reason) => heard.closes.push(`${code} ${reason}`));
  await once(socket, "open");
  onTestFinished(() => socket.terminate());
  return { socket, heard };
}

test("a client's socket passes an ingress and a tunnel to the cell and back, subprotocol included", async () => {
  const { client } = await startFleet([cellSockets((ws) => ws.on("message", (data) => ws.send(data)))]);
  const { socket, heard } = await open(await startIngress(client), ["chat"]);
  expect(socket.protocol).toBe("chat");
  socket.send("hello");
  socket.send("x".repeat(300_000));
  await until("echoes", () => heard.messages.length === 2);
  expect(heard.messages[0]).toBe("hello");
  expect(heard.messages[1]).toHaveLength(300_000);
});

test("a close of the client gets exactly one close frame: the cell's answer", async () => {
  const { client } = await startFleet([cellSockets(() => undefined)]);
  const { socket, heard } = await open(await startIngress(client));
  socket.close(1000, "x");
  await until("close", () => heard.closes.length > 0);
  expect(heard.closes).toEqual(["1000 x"]);
  await until("no socket left", () => client.counts().sockets === 0);
});

test("a close of the cell reaches the client as it is", async () => {
  const { client, nodes } = await startFleet([cellSockets((ws) => ws.close(4001, "bye"))]);
  const { heard } = await open(await startIngress(client));
  await until("close", () => heard.closes.length > 0);
  expect(heard.closes).toEqual(["4001 bye"]);
  await until("no socket left", () => nodes[0]?.listener.counts().sockets === 0);
});

test.each(["required", "off"] as const)(
  "an owner that dies between two frames is one close frame 1012, records %s",
  async (records) => {
    const options = { ...cellSockets((ws) => ws.send("last")), records };
    const { client, nodes } = await startFleet([options], { records });
    // Its record says that it has records: with `off` on this side nothing is offered.
    const { heard } = await open(await startIngress(client));
    await until("message", () => heard.messages.length === 1);
    nodes[0]?.kill();
    await until("close", () => heard.closes.length > 0);
    expect(heard).toEqual({ messages: ["last"], closes: ["1012 owner unavailable"] });
  },
);

test.each([
  ["within a frame", [0x82, 5, 1, 2], []],
  ["between two frames", [0x82, 2, 1, 2], [0x88, 19, 0x03, 0xf4, ...Buffer.from("owner unavailable")]],
  ["after a close frame", [0x88, 2, 0x03, 0xe8], []],
])("the bytes of an owner that dies %s end as they must", async (_, sent, last) => {
  const { client, nodes } = await startFleet([
    cellSockets((ws, raw) => {
      ws.removeAllListeners();
      raw.write(Uint8Array.from(sent));
    }),
  ]);
  const answer = await client.connect(cell, "http://cell/");
  if (answer.kind !== "socket") throw new Error("no socket");
  const received: number[] = [];
  answer.socket.on("data", (chunk: Buffer) => received.push(...chunk));
  await until("frame", () => received.length === sent.length);
  nodes[0]?.kill();
  await once(answer.socket, "end");
  expect(received).toEqual([...sent, ...last]);
});

test("an owner whose record lapsed, and which keeps the connection, is lost all the same", async () => {
  const { client, store } = await startFleet([cellSockets(() => undefined)], { lapseCheckMs: 20 });
  const { heard } = await open(await startIngress(client));
  store.objects.clear();
  await until("close", () => heard.closes.length > 0);
  expect(heard.closes).toEqual(["1012 owner unavailable"]);
});

test("a handshake that the cell refuses is answered as it did", async () => {
  const { client } = await startFleet([
    {
      onConnect: (_, socket) =>
        void socket.end("HTTP/1.1 403 Forbidden\r\nX-Why: no\r\nContent-Length: 4\r\n\r\nnope"),
    },
  ]);
  const answer = await client.connect(cell, "http://cell/");
  if (answer.kind !== "response") throw new Error("accepted");
  expect([answer.response.status, answer.response.headers.get("x-why")]).toEqual([403, "no"]);
  expect(await answer.response.text()).toBe("nope");
});

test("a socket accepted for another handshake is refused", async () => {
  const { client } = await startFleet([
    {
      onConnect: (_, socket) => {
        socket.write(
          "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n",
        );
      },
    },
  ]);
  await expect(client.connect(cell, "http://cell/")).rejects.toMatchObject({
    code: "CELLKIT_PEER_TUNNEL_LOST",
  });
});

test("a head in any pieces, and one that is no head, are stamped or cut", async () => {
  const { client } = await startFleet([
    {
      onConnect: (request, socket) => {
        if (request.url?.endsWith("/endless")) {
          socket.write("HTTP/1.1 200 OK\r\n");
          for (let i = 0; i < 80; i += 1) socket.write(`x-${i}: ${"y".repeat(1000)}\r\n`);
          return;
        }
        for (const character of "HTTP/1.1 404 No\r\ncontent-length: 2\r\nx-cells-route-error: stale-owner\r\n\r\n") {
          socket.write(character);
        }
        socket.end("no");
      },
    },
  ]);
  const answer = await client.connect(cell, "http://cell/");
  if (answer.kind !== "response") throw new Error("accepted");
  expect([answer.response.status, await answer.response.text()]).toEqual([404, "no"]);
  await expect(client.connect(cell, "http://cell/endless")).rejects.toMatchObject({
    code: "CELLKIT_PEER_TUNNEL_LOST",
  });
});

test("a socket that nobody reads stops its owner at a bounded amount", async () => {
  let sent = 0;
  const { client, nodes } = await startFleet([
    cellSockets((_, raw) => {
      const piece = Buffer.alloc(64 * 1024);
      const send = () => {
        let hasRoom = true;
        while (hasRoom && sent < 200_000_000) {
          hasRoom = raw.write(piece);
          sent += piece.length;
        }
      };
      raw.on("drain", send);
      send();
    }),
  ]);
  const answer = await client.connect(cell, "http://cell/");
  if (answer.kind !== "socket") throw new Error("no socket");
  let before = -1;
  await until("stop", () => {
    const isStill = sent === before;
    before = sent;
    return isStill && sent > 0;
  });
  expect(sent).toBeLessThan(60_000_000);
  expect(answer.socket.readableLength).toBeLessThan(1_000_000);
  expect(nodes[0]?.listener.counts().sockets).toBe(1);
});
