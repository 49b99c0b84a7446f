// What each kind of connection gets once the drain has begun: one test a row of the table in the README.
import { expect, test } from "vitest";
import type { RawClient } from "./support/raw-client.ts";
import { dialAndServe, get, ok, post, splice } from "./support/spliced.ts";

/** The refusal up to its date: every byte counts, clients match it. */
const refusalHead =
  "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n" +
  "proxy-status: celld; error=destination_unavailable\r\ncellkit-outcome: not-run\r\nconnection: close\r\n" +
  "content-length: 28\r\n";
const refusalBody = '\r\n\r\n{"ok":false,"draining":true}';
const closing = "connection: close\r\n";

/** Expects exactly the refusal, after what came before, and a FIN. */
async function expectRefused(client: RawClient, before = ""): Promise<void> {
  const text = await client.end();
  expect(text.slice(0, before.length)).toBe(before);
  const refusal = text.slice(before.length);
  expect(refusal.slice(0, refusalHead.length)).toBe(refusalHead);
  expect(refusal.slice(refusalHead.length)).toMatch(/^date: [^\r]+\r\n\r\n/);
  expect(refusal.slice(-refusalBody.length)).toBe(refusalBody);
  expect(refusal.split("HTTP/1.1")).toHaveLength(2);
}

test("old keep-alive, request after the flag: the exact refusal and a FIN, and the upstream sees nothing", async () => {
  const { server, upstream, dial } = await splice();
  const { client, link } = await dialAndServe(upstream, dial);
  server.drain();
  client.send(get);
  await expectRefused(client);
  expect(link.text).toBe(get);
  expect(server.totals).toMatchObject({ forwarded: 1, refused: 1 });
});

test("answer in flight, head not yet sent: whole, tells of the close, then FIN", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send(get);
  const link = await upstream.accept();
  await link.receive(get);
  server.drain();
  link.send(ok("whole"));
  expect(await client.end()).toBe(`HTTP/1.1 200 OK\r\n${closing}Content-Length: 5\r\n\r\nwhole`);
});

test("answer in flight that itself says close: whole, not told twice, then FIN", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send(get);
  const link = await upstream.accept();
  await link.receive(get);
  server.drain();
  const answer = ok("whole", "Connection: close\r\n");
  link.send(answer);
  expect(await client.end()).toBe(answer);
});

test("chunked stream in flight, head already sent: whole, then FIN", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send(get);
  const link = await upstream.accept();
  await link.receive(get);
  const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
  link.send(head);
  await client.receive("abc");
  server.drain();
  link.send("2\r\nde\r\n0\r\n\r\n");
  expect(await client.end()).toBe(`${head}2\r\nde\r\n0\r\n\r\n`);
});

test("after such a stream a client that sends at once gets the refusal, not a reset", async () => {
  const { server, upstream, dial } = await splice({ drainGraceMs: 600_000 });
  const client = await dial();
  client.send(get);
  const link = await upstream.accept();
  await link.receive(get);
  link.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na");
  await client.receive("\r\n\r\na");
  server.drain();
  link.send("b");
  await client.receive("ab");
  client.send(get);
  await expectRefused(client, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab");
});

test("in flight, second request after the flag: 200, then 503 and close", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send(get);
  const link = await upstream.accept();
  await link.receive(get);
  server.drain();
  client.send(get);
  // The held request must have arrived before the answer, so that the answer does not tell of a close.
  await server.idle();
  link.send(ok("one"));
  await expectRefused(client, ok("one"));
  expect(link.text).toBe(get);
});

test("in flight, second request after an answer that told of the close began: still 200, then 503 and close", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send(get);
  const link = await upstream.accept();
  await link.receive(get);
  server.drain();
  link.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\non");
  await client.receive("\r\n\r\non");
  client.send(get);
  await server.idle();
  link.send("e");
  await expectRefused(client, `HTTP/1.1 200 OK\r\n${closing}Content-Length: 3\r\n\r\none`);
});

test("two pipelined before the flag: 200, then 503 and close; the second never reached the upstream", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send(get + get);
  const link = await upstream.accept();
  await link.receive(get);
  server.drain();
  link.send(ok("one"));
  await expectRefused(client, ok("one"));
  expect(link.text).toBe(get);
});

test.each([
  ["by length", "Content-Length: 6", "abc", "def", "abcdef"],
  [
    "chunked",
    "Transfer-Encoding: chunked",
    "3\r\nabc\r\n",
    "3\r\ndef\r\n0\r\n\r\n",
    "3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n",
  ],
])("upload in progress, %s: 200 with all bytes, then FIN", async (_, field, first, rest, whole) => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  const head = `POST / HTTP/1.1\r\nHost: h\r\n${field}\r\n\r\n`;
  client.send(head + first);
  const link = await upstream.accept();
  await link.receive(first);
  server.drain();
  client.send(rest);
  await link.receive(whole);
  link.send(ok("stored"));
  expect(await client.end()).toBe(`HTTP/1.1 200 OK\r\n${closing}Content-Length: 6\r\n\r\nstored`);
  expect(link.text).toBe(head + whole);
});

test("half a head before, rest after: 200, FIN; and it counts as in flight meanwhile", async () => {
  const { server, upstream, dial } = await splice({ drainHeadTimeoutMs: 600_000 });
  const client = await dial();
  client.send(get.slice(0, 10));
  await client.until("half a head", () => server.counts().connections === 1);
  await server.idle();
  server.drain();
  expect(server.counts().inFlight).toBe(1);
  client.send(get.slice(10));
  const link = await upstream.accept();
  await link.receive(get);
  link.send(ok("served"));
  expect(await client.end()).toBe(`HTTP/1.1 200 OK\r\n${closing}Content-Length: 6\r\n\r\nserved`);
  expect(server.counts().inFlight).toBe(0);
});

test("half a head that stays half: the refusal, after its shorter time", async () => {
  const { server, dial } = await splice({ drainHeadTimeoutMs: 40 });
  const client = await dial();
  client.send(get.slice(0, 10));
  await server.idle();
  server.drain();
  await expectRefused(client);
  expect(server.counts().inFlight).toBe(0);
});

test("new GET: 503 and close", async () => {
  const { server, upstream, dial } = await splice();
  server.drain();
  const client = await dial();
  client.send(get);
  await expectRefused(client);
  expect(upstream.dials).toBe(0);
});

test("new HEAD: the refusal's head alone", async () => {
  const { server, dial } = await splice();
  server.drain();
  const client = await dial();
  client.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
  const text = await client.end();
  expect(text.startsWith(refusalHead)).toBe(true);
  expect(text.endsWith("\r\n\r\n")).toBe(true);
});

test("new upgrade: 503 and close", async () => {
  const { server, dial } = await splice();
  server.drain();
  const client = await dial();
  client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  await expectRefused(client);
});

test("new 8 MB POST at full speed: 503 and close, read on without a reset", async () => {
  const { server, dial } = await splice();
  server.drain();
  const client = await dial();
  const body = Buffer.alloc(8 * 1024 * 1024, 0x61);
  client.send(post(body.length)).send(body);
  await expectRefused(client);
  await client.until("upload", () => client.socket.writableLength === 0);
  client.socket.end();
  await client.until("close", () => server.counts().connections === 0);
  expect(client.error).toBeUndefined();
});

test("a refused client that never stops sending is cut off after the linger time", async () => {
  const { server, dial } = await splice({ lingerMs: 50 });
  server.drain();
  const client = await dial();
  client.send(post(1_000_000));
  await expectRefused(client);
  await client.until("cut", () => server.counts().connections === 0);
});

test("silent idle: left open, closed at the end", async () => {
  const { server, upstream, dial } = await splice();
  const { client } = await dialAndServe(upstream, dial);
  const silent = await dial();
  await client.until("two connections", () => server.counts().connections === 2);
  server.drain();
  await server.finished();
  await server.idle();
  await client.until("two connections", () => server.counts().connections === 2);
  expect(client.ended || silent.ended).toBe(false);
  const closed = server.close();
  await client.end();
  await silent.end();
  client.socket.end();
  silent.socket.end();
  await closed;
});

test("health is answered here during the drain, and the connection closes after it", async () => {
  const { server, dial } = await splice({
    local: ({ target }) => (target === "/health" ? { status: 503, body: '{"ok":false}' } : undefined),
  });
  server.drain();
  const client = await dial();
  client.send("GET /health HTTP/1.1\r\nHost: h\r\n\r\n");
  const text = await client.end();
  expect(text).toContain('{"ok":false}');
  expect(text).toContain(closing);
});

test("finished resolves once nothing is in flight, and not before", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send(get);
  const link = await upstream.accept();
  await link.receive(get);
  server.drain();
  let isFinished = false;
  const finished = server.finished().then(() => {
    isFinished = true;
  });
  await server.idle();
  expect(isFinished).toBe(false);
  link.send(ok("x"));
  await finished;
  expect(server.counts().inFlight).toBe(0);
});

test("finished gives up with the signal's reason", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send(get);
  await (await upstream.accept()).receive(get);
  const abort = new AbortController();
  const finished = server.finished({ signal: abort.signal });
  abort.abort(new RangeError("enough"));
  await expect(finished).rejects.toThrow("enough");
  await expect(server.finished({ signal: abort.signal })).rejects.toThrow("enough");
});
