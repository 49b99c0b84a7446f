// What an establishment may do before anybody has proven anything, and what may go wrong in it.
import { expect, inject, test } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { abortTarget } from "../src/abort-target.ts";
import { signRequest } from "../src/core/sign.ts";
import { establishmentRequest } from "../src/core/tunnel-head.ts";
import { dialTunnel } from "../src/dial-tunnel.ts";
import { exchange } from "../src/exchange.ts";
import { nonce } from "../src/random-ids.ts";
import { cell, startFleet } from "./support/fleet.ts";
import { startNode } from "./support/node.ts";
import { rawClient } from "./support/raw-client.ts";
import { quiet, testKey } from "./support/records.ts";

const echo = { onCluster: (tunnel: import("node:stream").Duplex) => void quiet(tunnel).pipe(tunnel) };
const bounds = { connectTimeoutMs: 1000, totalTimeoutMs: 5000, maxAnswerBytes: 4096 };

function establishment(given: { destination?: string; kind?: "do"; nonce?: string } = {}): string {
  return establishmentRequest({
    key: testKey,
    host: "owner:1",
    source: "caller",
    destination: "owner",
    timeMs: Date.now(),
    nonce: nonce(),
    kind: "do",
    ...given,
  }).toString("latin1");
}

async function answerTo(port: number, head: string): Promise<string> {
  const client = await rawClient(port);
  client.socket.write(head, "latin1");
  return await client.all();
}

test("each refusal of an establishment has its status, text and version", async () => {
  const { address } = await startNode();
  const row = async (head: string) => {
    const answer = await answerTo(address.port, head);
    expect(answer).toMatch(/\r\nx-cells-peer-version: 5\r\n/);
    expect(answer).toMatch(/\r\ndate: /);
    return [
      answer.slice(9, 12),
      answer.split("\r\n\r\n")[1],
      answer.includes("x-cells-route-error: stale-owner"),
    ];
  };
  const signed = establishment();
  const replace = (name: string, value: string) =>
    establishment().replace(new RegExp(`${name}: [^\r]*`, "i"), `${name}: ${value}`);
  expect(await row(replace("Upgrade", "h2c"))).toEqual(["400", "tunnel establishment must upgrade", false]);
  expect(await row(replace("x-cells-peer-signature", "0".repeat(64)))).toEqual([
    "401",
    "peer authentication failed",
    false,
  ]);
  const wrongVersion = replace("x-cells-peer-version", "2").replace(/signature: ./, "signature: x");
  expect(await row(wrongVersion)).toEqual(["426", "peer protocol version is incompatible", false]);
  expect(await row(replace("x-cells-tunnel-version", "4"))).toEqual([
    "426",
    "peer tunnel version is incompatible",
    false,
  ]);
  expect(await row(replace("x-cells-tunnel-kind", "other"))).toEqual(["400", "unknown tunnel kind", false]);
  const twice = signed.replace(/\r\n\r\n$/, "\r\nx-cells-peer-source: other\r\n\r\n");
  expect(await row(twice)).toEqual(["401", "peer authentication failed", false]);
  const elsewhere = establishment({ destination: "another" });
  expect(await row(elsewhere)).toEqual(["409", "peer request targets a different node session", true]);
  expect(await row(signed.replace("GET /peer/tunnel", "GET /peer/other"))).toEqual([
    "404",
    "not found",
    false,
  ]);
});

test("a wrong target leaves the nonce unused; an accepted one is a replay the second time", async () => {
  const { address } = await startNode();
  const once = nonce();
  expect(await answerTo(address.port, establishment({ destination: "another", nonce: once }))).toMatch(
    /^HTTP\/1.1 409/,
  );
  const head = establishment({ nonce: once });
  const first = await rawClient(address.port);
  first.socket.write(head);
  expect(await first.receive("\r\n\r\n")).toMatch(/^HTTP\/1.1 101/);
  expect(await answerTo(address.port, head)).toMatch(/^HTTP\/1.1 409 .*replay rejected/s);
});

test("a head in pieces of one byte opens a tunnel, and every split of the calls in it gives the same answer", async () => {
  const { address } = await startNode({
    onFetch: async (request, response) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      response.end(`${request.method} ${request.url} ${body}`);
    },
  });
  const call =
    "POST http://cell/a HTTP/1.1\r\nhost: cell\r\nx-cells-scope: Counter:1\r\ncontent-length: 5\r\n\r\nhello" +
    "GET http://cell/b HTTP/1.1\r\nx-cells-scope: Counter:1\r\n\r\n";
  const expected = ["POST http://cell/a hello", "GET http://cell/b "];
  const client = await rawClient(address.port);
  for (const character of establishment()) client.socket.write(character);
  await client.receive("\r\n\r\n");
  const splits = inject("size") === "long" ? call.length - 1 : 40;
  for (let i = 0; i < splits; i += 1) {
    const at = 1 + Math.floor((i * (call.length - 1)) / splits);
    client.text = "";
    client.socket.write(call.slice(0, at));
    await new Promise((resolve) => setImmediate(resolve));
    client.socket.write(call.slice(at));
    await client.receive(`${expected[1]}`);
    const bodies = client.text.split("\r\n\r\n").map((part) => part.split("HTTP/1.1")[0]);
    expect(bodies.filter((body) => body !== "")).toEqual(expected);
  }
});

test("calls without a scope, with a malformed one, or with one given twice, never reach the handler", async () => {
  const { address } = await startNode({ onFetch: () => expect.unreachable() });
  for (const control of [
    "",
    "x-cells-scope: a/b\r\n",
    "x-cells-scope: a\r\nx-cells-scope: b\r\n",
    "x-cells-scope: a\r\nx-cells-request-id: 1\r\n",
  ]) {
    const client = await rawClient(address.port);
    client.socket.write(`${establishment()}GET http://cell/ HTTP/1.1\r\nhost: cell\r\n${control}\r\n`);
    expect(await client.receive("malformed_cell_scope")).toMatch(/HTTP\/1.1 400/);
  }
});

test("a connection that does not send its head in time is cut, dripping or not", async () => {
  const node = await startNode({ ...echo, headTimeoutMs: 150 });
  const [silent, slow] = [await rawClient(node.address.port), await rawClient(node.address.port)];
  const drip = setInterval(() => slow.socket.write("G"), 10);
  await Promise.all([silent.all(), slow.all()]).finally(() => clearInterval(drip));
  expect(node.listener.counts()).toMatchObject({ halfOpen: 0, raw: 0 });
});

test("while a connection has not sent its head, others are served", async () => {
  const node = await startNode({ ...echo, headTimeoutMs: 60_000 });
  const [silent, slow] = [await rawClient(node.address.port), await rawClient(node.address.port)];
  slow.socket.write("G");
  await until("both", () => node.listener.counts().halfOpen === 2);
  const tunnel = await dialTunnel({
    ...node,
    kind: "cluster",
    key: testKey,
    self: "caller",
    destination: "owner",
  });
  expect(node.listener.counts()).toMatchObject({ halfOpen: 2, raw: 1 });
  expect(silent.ended || slow.ended).toBe(false);
  tunnel.destroy();
});

test("a head that is too long is refused", async () => {
  const { address } = await startNode();
  const head = establishment().replace(/\r\n\r\n$/, `\r\nx-long: ${"y".repeat(20_000)}\r\n\r\n`);
  expect(await answerTo(address.port, head)).toMatch(/^HTTP\/1.1 431/);
});

test("half-open connections are bounded in number, the oldest goes, and a peer gets through", async () => {
  const flood = inject("size") === "long" ? 10_000 : 300;
  const halfOpenCount = flood / 10;
  const node = await startNode({ ...echo, halfOpenCount });
  const before = process.memoryUsage().rss;
  const clients: Awaited<ReturnType<typeof rawClient>>[] = [];
  for (let i = 0; i < flood; i += 1) {
    const client = await rawClient(node.address.port);
    client.socket.write("GET /peer/tunnel HTTP/1.1\r\nx: ");
    clients.push(client);
    expect(node.listener.counts().halfOpen).toBeLessThanOrEqual(halfOpenCount);
  }
  await until("cut connections", () => clients.filter(({ ended }) => ended).length >= flood - halfOpenCount);
  const tunnel = await dialTunnel({
    ...node,
    kind: "cluster",
    key: testKey,
    self: "caller",
    destination: "owner",
  });
  tunnel.destroy();
  const held = await new Promise<number>((resolve) =>
    node.server.getConnections((_, count) => resolve(count)),
  );
  expect(held).toBeLessThanOrEqual(halfOpenCount + 1);
  expect(process.memoryUsage().rss - before).toBeLessThan(200_000_000);
});

test("a peer that never reads costs a bounded amount, and others are served", async () => {
  let sent = 0;
  const { client, nodes } = await startFleet([
    {
      onFetch: (request, response) => {
        if (request.url?.endsWith("/small")) {
          response.end("served");
          return;
        }
        const piece = Buffer.alloc(64 * 1024);
        const send = () => {
          let hasRoom = true;
          while (hasRoom) {
            hasRoom = response.write(piece);
            sent += piece.length;
          }
        };
        response.on("drain", send);
        send();
      },
    },
  ]);
  const unread = await client.fetch(cell, "http://cell/big");
  let before = -1;
  await until("stop", () => {
    const isStill = sent === before;
    before = sent;
    return isStill && sent > 0;
  });
  expect(sent).toBeLessThan(60_000_000);
  expect(await (await client.fetch(cell, "http://cell/small")).text()).toBe("served");
  await unread.body?.cancel();
  await until("end of the call", () => nodes[0]?.listener.counts().calls === 0);
});

test("bytes behind an establishment that offers records are refused: they were not sealed", async () => {
  const { address } = await startNode(echo);
  const head = establishmentRequest({
    key: testKey,
    host: "owner:1",
    source: "caller",
    destination: "owner",
    timeMs: Date.now(),
    nonce: nonce(),
    kind: "cluster",
    recordsNonce: nonce(),
  });
  expect(await answerTo(address.port, `${head}in the clear`)).toMatch(/^HTTP\/1.1 400/);
});

test("a source that is known to have records may not come without an offer", async () => {
  const known = { sourceHasRecords: async (source: string) => source === "caller" };
  const node = await startNode({ ...known, onFetch: (_, response) => void response.end("x") });
  const dial = (self: string) =>
    dialTunnel({ ...node, kind: "do", key: testKey, self, destination: "owner", records: "off" });
  await expect(dial("caller")).rejects.toMatchObject({ status: 403 });
  (await dial("stranger")).destroy();
});

test("a cancellation is judged as every signed request: signature, method, target, form", async () => {
  const { address } = await startNode();
  const cancel = async (target: string, given: { method?: "GET" | "POST"; destination?: string } = {}) => {
    const { method = "POST", destination = "owner" } = given;
    const signed = signRequest({
      key: testKey,
      version: 5,
      method,
      target,
      source: "caller",
      destination,
      timeMs: Date.now(),
      nonce: nonce(),
    });
    const { status, text, header } = await exchange(address, { method, target, headers: signed }, bounds);
    expect(header("x-cells-peer-version")).toBe("5");
    return [status, text, header("x-cells-route-error")];
  };
  const id = "0".repeat(31);
  expect(await cancel(abortTarget("A:b", `${id}1`))).toEqual([204, "", undefined]);
  // The signature covers the target as it is on the wire: both spellings of a scope are good.
  expect(await cancel(`/peer/abort/A:b/${id}2`)).toEqual([204, "", undefined]);
  expect(await cancel("/peer/abort/x")).toEqual([400, "invalid abort target", undefined]);
  expect(await cancel(`/peer/abort/%zz/${id}1`)).toEqual([400, "invalid abort target", undefined]);
  expect(await cancel(`/peer/abort/a%2Fb/${id}1`)).toEqual([400, "invalid abort scope", undefined]);
  expect(await cancel("/peer/abort/A:b/xyz")).toEqual([400, "invalid request id", undefined]);
  expect(await cancel(`/peer/abort/A:b/${id}1`, { method: "GET" })).toEqual([
    405,
    "method not allowed",
    undefined,
  ]);
  const elsewhere = await cancel(`/peer/abort/A:b/${id}1`, { destination: "another" });
  expect(elsewhere).toEqual([409, "peer request targets a different node session", "stale-owner"]);
});

test("a cancellation that comes before its call drops the call", async () => {
  let runs = 0;
  const { address } = await startNode({
    onFetch: (_, response) => {
      runs += 1;
      response.end("ran");
    },
  });
  const id = "ab".repeat(16);
  const target = abortTarget("A:b", id);
  const request = {
    version: 5,
    method: "POST",
    source: "caller",
    destination: "owner",
    timeMs: Date.now(),
  } as const;
  const headers = signRequest({ ...request, key: testKey, target, nonce: nonce() });
  await exchange(address, { method: "POST", target, headers }, bounds);
  const call = `GET http://cell/ HTTP/1.1\r\nx-cells-scope: A:b\r\nx-cells-request-id: ${id}\r\n\r\n`;
  const client = await rawClient(address.port);
  client.socket.write(establishment() + call);
  await client.all();
  expect(runs).toBe(0);
  const again = await rawClient(address.port);
  again.socket.write(establishment() + call);
  await again.receive("ran");
});

test("the answer to a handshake inside a tunnel has the version, and nothing that only nodes may say", async () => {
  const { address } = await startNode({
    onConnect: (_, socket) => {
      socket.write(
        "HTTP/1.1 101 Switching Protocols\r\nX-Cells-Route-Error: stale-owner\r\nX-Own: 1\r\n\r\nraw",
      );
    },
  });
  const client = await rawClient(address.port);
  client.socket.write(
    `${establishment()}GET http://cell/ HTTP/1.1\r\nx-cells-scope: A:b\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n`,
  );
  const answer = (await client.receive("raw")).split("\r\n\r\n").at(1);
  expect(answer).toBe("HTTP/1.1 101 Switching Protocols\r\nX-Own: 1\r\nx-cells-peer-version: 5");
});
