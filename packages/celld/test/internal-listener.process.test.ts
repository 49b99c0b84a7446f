// What the internal listener answers, and to whom: operators, peers, probes.
import { diagnoseNode, type FleetKey, NodeDirectory, PeerClient, resolveCell } from "@cellkit/peer";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { Fleet } from "./support/fleet.ts";
import { askSigned, keyOf, outerHost, roomsProject } from "./support/peers.ts";
import { RawClient } from "./support/raw-client.ts";
import type { TestNode } from "./support/test-node.ts";

const scopeOf = (name: string) => resolveCell("rooms", { className: "Room", name }).scope;

let fleet: Fleet;
let near: TestNode;
let far: TestNode;
let key: FleetKey;

beforeAll(async () => {
  const started = await Fleet.start(2, { project: roomsProject });
  fleet = started.fleet;
  [near, far] = started.nodes as [TestNode, TestNode];
  key = await keyOf(fleet);
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** What the internal listener of a node answers. */
async function ask(node: TestNode, path: string, init: RequestInit = {}) {
  const answer = await fetch(`${node.internalUrl}${path}`, { redirect: "manual", ...init });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

describe("operator routes", () => {
  it("/cell brings a cell into memory, and says where it is", async () => {
    const scope = scopeOf("opened");
    const local = await ask(near, `/cell/${scope}`);
    expect([local.status, JSON.parse(local.text)]).toEqual([200, { route: "local", cell: scope }]);
    expect((await near.counted())["residents"]).toContain(scope);
    const remote = await ask(far, `/cell/${scope}`);
    expect([remote.status, remote.headers.get("location"), JSON.parse(remote.text)]).toEqual([
      307,
      null,
      { route: "remote", node: near.node, addr: new URL(near.internalUrl).host, peer_protocol: 5 },
    ]);
    // No handler of it has run.
    expect((await near.ask("/opened/")).body).toMatchObject({ calls: 1 });
  });

  it("/cell says why it does not know", async () => {
    expect(await ask(near, `/cell/Absent:${"0".repeat(64)}`)).toMatchObject({
      status: 503,
      text: '{"error":"RuntimeFailed"}',
    });
    expect(await ask(near, `/cell/Room:${"0".repeat(64)}`)).toMatchObject({
      status: 400,
      text: '{"error":"malformed_cell_scope"}',
    });
  });

  it("/do gives the request to the cell, wherever it is, by its scope or its bare id", async () => {
    await near.ask("/asked/");
    const [, id] = scopeOf("asked").split(":");
    for (const node of [near, far]) {
      for (const name of [scopeOf("asked"), id]) {
        const { status, headers, text } = await ask(node, `/do/${name}?q=1`, {
          method: "POST",
          body: "hello",
          headers: { "x-own": "kept", "x-cells-scope": scopeOf("other") },
        });
        expect([status, headers.get("x-cells-peer-version")]).toEqual([200, "5"]);
        const seen = JSON.parse(text);
        expect(seen).toMatchObject({
          method: "POST",
          body: "hello",
          url: `${node.internalUrl}/do/${name}?q=1`,
          headers: { "x-own": "kept" },
        });
        expect(seen.headers).not.toHaveProperty("x-cells-scope");
      }
    }
  });

  it.each<[path: string, status: number, text: string]>([
    ["/do/Room/x", 400, "cell id is not a well-formed scope"],
    ["/do/x", 400, "cell id is not a well-formed scope"],
    ["/do/Room:x", 400, "cell id is not a well-formed scope"],
    [`/do/__D1Database:${"0".repeat(64)}`, 403, '{"error":"a reserved class is not reachable over /do/"}'],
    [`/do/Absent:${"0".repeat(64)}`, 503, "route failed: RuntimeFailed"],
    ["/evict/..", 404, '{"error":"not_found"}'],
    ["/evict/a/b", 400, '{"error":"malformed_cell_scope"}'],
    ["/cell/a%3Ab", 400, '{"error":"malformed_cell_scope"}'],
    ...["/cell", "/evict"].flatMap((route) =>
      ["foo", "Room:x", "0".repeat(64), `:${"0".repeat(64)}`].map((text): [string, number, string] => [
        `${route}/${text}`,
        400,
        '{"error":"malformed_cell_scope"}',
      ]),
    ),
  ])("%s is %i", async (path, status, text) => {
    expect(await ask(near, path)).toMatchObject({ status, text });
  });

  it("/evict says yes and lets the cell be", async () => {
    const { body } = await near.ask("/kept/");
    expect(await ask(near, `/evict/${scopeOf("kept")}`)).toMatchObject({ status: 200, text: '{"ok":true}' });
    expect((await near.ask("/kept/")).body["boot"]).toBe(body["boot"]);
  });

  it("/shutdown takes POST only, and not from a web page", async () => {
    expect((await ask(near, "/shutdown")).status).toBe(405);
    expect((await ask(near, "/shutdown?handoff=preserve", { method: "POST" })).status).toBe(501);
    expect(
      (await ask(near, "/shutdown", { method: "POST", headers: { origin: "http://evil" } })).status,
    ).toBe(403);
    expect((await near.state())["draining"]).toBe(false);
  });
});

describe("on an address that is not loopback", () => {
  const host = outerHost;
  const env = { CELLD_UNSAFE_PUBLIC_ADVERTISE: "1" };

  it.skipIf(host === undefined)(
    host === undefined
      ? "operator routes need a signature (not run: this machine has no address but loopback)"
      : "operator routes need a signature, others are open",
    async () => {
      const node = await fleet.node(2, { host: host ?? "", env });
      await node.ready();
      const scope = scopeOf("outer");
      for (const [method, path] of [
        ["GET", `/cell/${scope}`],
        ["POST", `/do/${scope}`],
        ["GET", `/evict/${scope}`],
        ["POST", "/shutdown"],
      ] as const) {
        const headers = { "x-forwarded-for": "127.0.0.1", host: "127.0.0.1" };
        expect(await ask(node, path, { method, headers })).toMatchObject({
          status: 401,
          text: "peer authentication failed",
        });
      }
      expect((await ask(node, "/state")).status).toBe(200);
      expect((await ask(node, "/metrics")).status).toBe(200);

      expect((await askSigned(node, `/cell/${scope}`, { key })).status).toBe(200);
      const asked = await askSigned(node, `/do/${scope}`, { key, method: "POST", body: "signed" });
      expect(await asked.json()).toMatchObject({ body: "signed" });
      expect((await askSigned(node, "/shutdown", { key, method: "POST", version: 2 })).status).toBe(426);
      expect((await askSigned(node, "/shutdown", { key, method: "POST", destination: "other" })).status).toBe(
        409,
      );
      expect((await node.state())["draining"]).toBe(false);
      const nonce = "f".repeat(32);
      expect((await askSigned(node, "/shutdown", { key, method: "POST", nonce })).status).toBe(200);
      expect((await node.process.exited).code).toBe(0);
      // The next process of that name does not take what the former one took.
      const timeMs = Date.now() - 1;
      const next = await fleet.node(2, { host: host ?? "", env });
      await next.ready();
      expect((await askSigned(next, "/shutdown", { key, method: "POST", timeMs })).status).toBe(401);
      expect((await next.drain()).code).toBe(0);
    },
  );

  it.skipIf(host === undefined)("they need none with --operator-api open", async () => {
    const node = await fleet.node(3, { host: host ?? "", env: { ...env, CELLD_OPERATOR_API: "open" } });
    await node.ready();
    expect((await ask(node, `/cell/${scopeOf("open")}`)).status).toBe(200);
    expect((await ask(node, "/shutdown", { method: "POST" })).status).toBe(200);
    expect((await node.process.exited).code).toBe(0);
  });
});

describe("the protocol's paths", () => {
  const directory = () => new NodeDirectory(fleet.bucket, { cacheMs: 0 });

  it("probes of both generations are answered by the process that wrote the record", async () => {
    const record = await directory().find(near.node);
    expect(record).toMatchObject({ addr: new URL(near.internalUrl).host, peerProtocol: 5 });
    for (const peerProtocol of [5, 2]) {
      const found = await diagnoseNode(
        { ...record, addr: record?.addr ?? "", peerProtocol },
        { keys: [key] },
      );
      expect(found).toMatchObject({ verdict: "ready", proved: true, peerProtocol });
    }
  });

  it.each([
    ["/__do/Room:1", 2, 426],
    ["/__do/Room:1", 5, 404],
    ["/__log/append", 2, 426],
    ["/peer/handoff", 2, 426],
    ["/peer/handoff", 5, 404],
    ["/runtime/__D1Database:x", 5, 404],
    ["/peer/probe", 2, 426],
    ["/__celld/probe", 5, 426],
  ] as const)("%s signed by version %i is %i", async (path, version, status) => {
    const answer = await askSigned(near, path, { key, version, method: "POST" });
    expect([answer.status, answer.headers.has("x-cells-peer-version")]).toEqual([status, true]);
  });

  it("a node's record says what it holds", async () => {
    const beganMs = Date.now();
    const held = ["a", "b", "c"].map((name) => `held-${name}`);
    await Promise.all(held.map((name) => far.ask(`/${name}/`)));
    const load = await until("load in the record", async () => {
      const record = await directory().find(far.node);
      return record?.load !== undefined && record.load.residentCells >= held.length ? record.load : undefined;
    });
    const { rss_bytes: rssBytes } = (await far.counted()) as { rss_bytes: number };
    // No other test opens a cell at this node.
    expect(load.residentCells).toBe(held.length);
    // Most of it is workerd's.
    expect(load.rssBytes).toBeGreaterThan(rssBytes / 2);
    expect(load).toMatchObject({ restoring: 0, pressured: false, inUseBytes: null });
    expect(load.sampledMs).toBeGreaterThanOrEqual(beganMs);
    expect(load.sampledMs).toBeLessThanOrEqual(Date.now());
  });

  it("a node that drains says so, and answers probes and operators to the end", async () => {
    const record = await directory().find(far.node);
    // An upload holds the drain open for as long as this looks at it.
    const held = await RawClient.dial(far.port);
    held.send("POST /uploaded/ HTTP/1.1\r\nHost: rooms.example\r\nTransfer-Encoding: chunked\r\n\r\n");
    await until("upload under way", async () => (await far.state())["in_flight"] === 1);
    const exit = far.drain();
    await far.draining();
    const target = { ...record, addr: record?.addr ?? "" };
    expect(await diagnoseNode(target, { keys: [key] })).toMatchObject({ verdict: "draining", proved: true });
    expect((await ask(far, `/evict/${scopeOf("x")}`)).status).toBe(200);
    expect(await held.send("0\r\n\r\n").finish()).toMatch(/^HTTP\/1\.1 200 /);
    expect((await exit).code).toBe(0);
    expect(await diagnoseNode(target, { keys: [key] })).toMatchObject({ verdict: "unreachable" });
  });
});

it("connections that say nothing are bounded: one more than 1,024 cuts the oldest, and others are served", async () => {
  const { port } = new URL(near.internalUrl);
  const silent: RawClient[] = [];
  try {
    for (let count = 0; count < 1_025; count += 1) silent.push(await RawClient.dial(Number(port)));
    await until("cut of the oldest", () => silent[0]?.closed === true || silent[0]?.ended === true);
    expect(silent.at(-1)?.ended).toBe(false);
    expect((await ask(near, "/state")).status).toBe(200);
  } finally {
    for (const { socket } of silent) socket.destroy();
  }
});

it("without a deployment a call is answered 503 and is known not to have run, and there is no /do", async () => {
  await using empty = await Fleet.open();
  const node = await empty.node(0);
  await node.ready();
  await using client = new PeerClient({
    store: empty.bucket,
    key: await keyOf(empty),
    self: "tester",
    script: "rooms",
  });
  const cell = { className: "Room", name: "none" };
  const answer = await client.fetch(cell, "http://rooms/");
  expect([answer.status, answer.headers.get("cellkit-outcome"), await answer.text()]).toEqual([
    503,
    "not-run",
    "route failed: NodeUnavailable",
  ]);
  await expect(client.rpc(cell, { method: "add" })).rejects.toThrow("route failed: NodeUnavailable");
  expect((await ask(node, `/do/${scopeOf("none")}`)).status).toBe(404);
  expect(await ask(node, `/cell/${scopeOf("none")}`)).toMatchObject({
    status: 503,
    text: '{"error":"NodeUnavailable"}',
  });
});
