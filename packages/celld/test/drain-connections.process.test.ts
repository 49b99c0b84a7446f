// What a drain does to each kind of client connection, byte by byte, on a real node that serves a real Worker. All
// connections see the same drain: it begins in `beforeAll`, and an upload that the last test ends holds it open.
import { afterAll, beforeAll, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { Fleet } from "./support/fleet.ts";
import { parseAnswers, RawClient } from "./support/raw-client.ts";
import type { TestNode } from "./support/test-node.ts";

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: chat.example\r\n\r\n`;
const quick = get("/slow?ms=0");
const refusalBody = '{"ok":false,"draining":true}';
const refusal = new RegExp(
  `^HTTP/1\\.1 503 Service Unavailable\\r\\ncontent-type: application/json\\r\\nretry-after: 1\\r\\n` +
    `proxy-status: celld; error=destination_unavailable\\r\\ncellkit-outcome: not-run\\r\\nconnection: close\\r\\n` +
    `content-length: 28\\r\\ndate: [^\\r\\n]{29}\\r\\n\\r\\n${refusalBody.replace(/[{}]/g, "\\$&")}$`,
);
/** How long celld reads a refused client on: the bytes below have to be taken within that. */
const lingerMs = 2_000;
const uploadBytes = 2 * 1024 * 1024;
/** What requests take that must be under way when the drain begins. */
const slowMs = 4_500;

let fleet: Fleet;
let node: TestNode;
let clients: Record<
  | "keptAlive"
  | "slow"
  | "streamed"
  | "second"
  | "pipelined"
  | "byLength"
  | "chunked"
  | "halfHead"
  | "idle"
  | "hold",
  RawClient
>;

beforeAll(async () => {
  const started = await Fleet.start(1, { env: { CELLD_SHUTDOWN_DRAIN_MS: "300000" } });
  fleet = started.fleet;
  node = started.nodes[0] as TestNode;
  const dial = () => RawClient.dial(node.port);
  const inFlight = async () => (await node.state())["in_flight"];
  const uploads = { byLength: await dial(), chunked: await dial(), hold: await dial() };
  const head = "POST /echo-length HTTP/1.1\r\nHost: chat.example\r\n";
  uploads.byLength.send(`${head}Content-Length: 3000000\r\n\r\n`).send(Buffer.alloc(1_000_000, "x"));
  uploads.chunked.send(`${head}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`);
  uploads.hold.send(`${head}Transfer-Encoding: chunked\r\n\r\n`);
  for (;;) {
    await until("uploads in flight", async () => (await inFlight()) === 3);
    clients = {
      ...uploads,
      keptAlive: await dial(),
      slow: await dial(),
      streamed: await dial(),
      second: await dial(),
      pipelined: await dial(),
      halfHead: await dial(),
      idle: await dial(),
    };
    await clients.keptAlive.send(quick).receive("\r\n\r\n1\n");
    clients.halfHead.send("GET /slow?ms=0 HT");
    clients.slow.send(get(`/slow?ms=${slowMs}`));
    clients.streamed.send(get(`/slow?ms=${slowMs}&chunks=6`));
    clients.second.send(get(`/slow?ms=${slowMs}`));
    clients.pipelined.send(get(`/slow?ms=${slowMs}`) + get("/rooms/never/boot"));
    await clients.streamed.receive("\r\n1\n\r\n");
    // All heads but the half one have reached the Worker's side of the splice, unless this machine took too long for it.
    const { slow, second } = clients;
    const all = await until("requests in flight", async () =>
      (await inFlight()) === 7 ? "there" : slow.text + second.text !== "" && "answered",
    );
    if (all === "there") break;
    for (const client of Object.values(clients)) {
      if (!Object.values(uploads).includes(client)) client.socket.destroy();
    }
  }
  node.process.signal("SIGTERM");
  await node.draining();
});
afterAll(() => fleet[Symbol.asyncDispose]());

it("a request on an old keep-alive connection gets the refusal and a FIN, to the byte", async () => {
  const before = clients.keptAlive.text.length;
  const text = await clients.keptAlive.send(quick).finish();
  expect(text.slice(before)).toMatch(refusal);
});

it("a second request after the flag waits for the first answer and gets the refusal", async () => {
  const [first, second, ...more] = parseAnswers(await clients.second.send(quick).finish());
  expect(first).toMatchObject({ status: 200, body: "1\n" });
  expect(second).toMatchObject({ status: 503, body: refusalBody, fields: { connection: "close" } });
  expect(more).toEqual([]);
});

it("the second of two pipelined requests gets the refusal and never reaches the Worker", async () => {
  const [first, second, ...more] = parseAnswers(await clients.pipelined.finish());
  expect(first).toMatchObject({ status: 200, body: "1\n" });
  expect(second).toMatchObject({ status: 503, body: refusalBody, fields: { connection: "close" } });
  expect(more).toEqual([]);
  const { residents } = (await node.state()) as { residents: string[] };
  expect(residents).toEqual([]);
});

it("half a head from before the flag is served when the rest comes", async () => {
  const [answer, ...more] = parseAnswers(
    await clients.halfHead.send("TP/1.1\r\nHost: chat.example\r\n\r\n").finish(),
  );
  expect(answer).toMatchObject({ status: 200, body: "1\n", fields: { connection: "close" } });
  expect(more).toEqual([]);
});

it("an answer in flight comes whole, says that the connection closes, and a FIN follows", async () => {
  const [answer, ...more] = parseAnswers(await clients.slow.finish());
  expect(answer).toMatchObject({ status: 200, body: "1\n", fields: { connection: "close" } });
  expect(more).toEqual([]);
});

it("a chunked stream in flight comes whole, and a FIN follows", async () => {
  const [answer, ...more] = parseAnswers(await clients.streamed.finish());
  expect(answer).toMatchObject({ status: 200, body: "1\n2\n3\n4\n5\n6\n" });
  expect(more).toEqual([]);
});

it.each(["byLength", "chunked"] as const)("an upload in progress (%s) is taken whole", async (kind) => {
  const client = clients[kind];
  if (kind === "byLength") client.send(Buffer.alloc(2_000_000, "x"));
  else client.send("6\r\n world\r\n0\r\n\r\n");
  const [answer, ...more] = parseAnswers(await client.finish());
  expect(answer).toMatchObject({ status: 200, body: `{"bytes":${kind === "byLength" ? 3_000_000 : 11}}` });
  expect(more).toEqual([]);
});

it.each([
  ["a GET", quick],
  [
    "an upgrade",
    "GET /rooms/a/socket HTTP/1.1\r\nHost: chat.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
  ],
])("%s on a new connection gets the refusal and a FIN, to the byte", async (_, request) => {
  const client = await RawClient.dial(node.port);
  expect(await client.send(request).finish()).toMatch(refusal);
});

it("an upload at full speed on a new connection sees the refusal and no reset", async () => {
  for (;;) {
    const client = await RawClient.dial(node.port);
    const beganMs = performance.now();
    client.send(`POST /echo-length HTTP/1.1\r\nHost: chat.example\r\nContent-Length: ${uploadBytes}\r\n\r\n`);
    for (let sent = 0; sent < uploadBytes; sent += 65_536) client.send(Buffer.alloc(65_536));
    await until("end", () => client.closed || (client.ended && client.socket.writableLength === 0));
    // Whoever takes longer than celld reads on may be reset: that says nothing here.
    if (client.error !== undefined && performance.now() - beganMs >= lingerMs) continue;
    expect(client.error).toBeUndefined();
    expect(client.text).toMatch(refusal);
    return;
  }
});

it("health is 503 without the drain's marker, on a kept connection too", async () => {
  const answer = await fetch(`${node.publicUrl}/__celld/health`);
  expect([answer.status, await answer.text()]).toEqual([503, '{"ok":false}']);
});

it("a silent connection stays open until the end, which comes when the last request is answered: code 0", async () => {
  expect(clients.idle.ended).toBe(false);
  const [answer] = parseAnswers(await clients.hold.send("0\r\n\r\n").finish());
  expect(answer).toMatchObject({ status: 200, body: '{"bytes":0}' });
  expect(await clients.idle.finish()).toBe("");
  expect(await node.process.exited).toEqual({ code: 0, signal: null });
  await node.gone();
});
