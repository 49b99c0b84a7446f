// What passes between a client and the upstream while all is well.
import { expect, test } from "vitest";
import { heldClock } from "../../../tools/test-support/held-clock.ts";
import type { RawClient } from "./support/raw-client.ts";
import { startUpstream } from "./support/scripted-upstream.ts";
import { dialAndServe, get, ok, post, splice } from "./support/spliced.ts";

test("requests and answers pass byte for byte, one connection to the upstream for all of them", async () => {
  const { server, upstream, dial } = await splice();
  const { client, link } = await dialAndServe(upstream, dial);
  const odd =
    "PUT /b?c HTTP/1.1\r\nhOsT:h\r\nX: \xff y\r\nTransfer-Encoding: chunked\r\n\r\n3;e\r\nabc\r\n0\r\nT: x\r\n\r\n";
  client.send(Buffer.from(odd, "latin1"));
  await link.receive(odd);
  expect(link.text).toBe(get + odd);
  const answer =
    "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 418 I'm\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
  link.send(answer);
  await client.receive("0\r\n\r\n");
  expect(client.text).toBe(answer);
  expect(upstream.dials).toBe(1);
  expect(server.totals).toMatchObject({ connections: 1, forwarded: 2, lost: 0 });
});

test("a second pipelined request waits until the first is answered whole", async () => {
  const { upstream, dial } = await splice();
  const client = await dial();
  const second = `${post(3)}abc`;
  client.send(get + second + get);
  const link = await upstream.accept();
  await link.receive(get);
  link.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\non");
  await client.receive("\r\n\r\non");
  expect(link.text).toBe(get);
  link.send("e");
  await link.receive("abc");
  expect(link.text).toBe(get + second);
  link.send(ok("two"));
  await link.receive(get, 2);
  link.send(ok("three"));
  await client.receive("three");
  expect(client.text).toBe(ok("one") + ok("two") + ok("three"));
});

test("heads and bodies may come in pieces", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  const whole = `${post(3)}abc`;
  for (const piece of [whole.slice(0, 1), whole.slice(1, 20), whole.slice(20, -4), whole.slice(-4, -2)]) {
    client.send(piece);
    await server.idle();
  }
  client.send(whole.slice(-2));
  const link = await upstream.accept();
  await link.receive("abc");
  expect(link.text).toBe(whole);
  const answer = ok("xy");
  for (const piece of [answer.slice(0, 5), answer.slice(5, -3), answer.slice(-3, -1)]) {
    link.send(piece);
    await server.idle();
  }
  link.send(answer.slice(-1));
  await client.receive("xy");
  expect(client.text).toBe(answer);
});

test("the client's address is put into each request head, in the secret field", async () => {
  const { upstream, dial } = await splice({
    clientHeader: {
      name: "X-Secret-Cf",
      value: ({ address, port }) => ({ clientIp: address, port, city: "Zürich" }),
    },
  });
  const client = await dial();
  const injected = `X-Secret-Cf: {"clientIp":"127.0.0.1","port":${client.socket.localPort},"city":"Z\\u00fcrich"}\r\n`;
  const expected = `GET /a HTTP/1.1\r\n${injected}Host: h\r\n\r\n`;
  client.send(get);
  const link = await upstream.accept();
  await link.receive(expected);
  link.send(ok("1"));
  await client.receive("1");
  client.send(get);
  await link.receive(expected, 2);
  expect(link.text).toBe(expected + expected);
});

test("a client that sends the secret field itself is refused", async () => {
  const { upstream, dial } = await splice({ clientHeader: { name: "X-Secret-Cf", value: () => 1 } });
  const client = await dial();
  client.send('GET / HTTP/1.1\r\nHost: h\r\nx-secret-cf: {"clientIp":"10.0.0.1"}\r\n\r\n');
  expect(await client.end()).toMatch(/^HTTP\/1\.1 400 /);
  expect(upstream.dials).toBe(0);
});

test("fields with a stripped beginning are taken out of each head, and nothing else is", async () => {
  const { upstream, dial } = await splice({
    clientHeader: { name: "X-Secret-Cf", value: () => 1 },
    strippedRequestFields: ["x-cell-", "own-"],
  });
  const client = await dial();
  client.send(
    "POST / HTTP/1.1\r\nHost: h\r\nOWN-length: 9\r\nContent-Length: 1\r\nX-Cell-A: 1\r\nx-cell: kept\r\nmy-own-a: kept\r\n" +
      "x-cell-: 2\r\nX-CELL-B:\r\n\r\n-",
  );
  const expected =
    "POST / HTTP/1.1\r\nX-Secret-Cf: 1\r\nHost: h\r\nContent-Length: 1\r\nx-cell: kept\r\nmy-own-a: kept\r\n\r\n-";
  const link = await upstream.accept();
  await link.receive("\r\n\r\n-");
  expect(link.text).toBe(expected);
  link.send(ok("1"));
  await client.receive("1");
  client.send(get);
  await link.receive(get.slice(-12));
  expect(link.text).toBe(`${expected}GET /a HTTP/1.1\r\nX-Secret-Cf: 1\r\nHost: h\r\n\r\n`);
});

test.each([
  ["without Connection", "Upgrade: websocket\r\nSec-WebSocket-Key: x\r\n", "Sec-WebSocket-Key: x\r\n"],
  ["that Connection does not name", "upgrade: h2c\r\nConnection: a\r\n", "Connection: a\r\n"],
  [
    "on several lines, among lines that are taken out too",
    "Upgrade: a\r\nX-Cell-A: 1\r\nB: 2\r\nUPGRADE: websocket\r\nX-Cell-B: 1\r\n",
    "B: 2\r\n",
  ],
])("an Upgrade %s is no upgrade: taken out, and answered once", async (_, fields, rest) => {
  const { server, upstream, dial } = await splice({ strippedRequestFields: ["x-cell-"] });
  const client = await dial();
  client.send(`GET / HTTP/1.1\r\nHost: h\r\n${fields}\r\n`);
  const link = await upstream.accept();
  await link.receive("\r\n\r\n");
  expect(link.text).toBe(`GET / HTTP/1.1\r\nHost: h\r\n${rest}\r\n`);
  link.send(ok("1"));
  await client.receive(ok("1"));
  client.send(get);
  await link.receive(get);
  expect(server.totals).toMatchObject({ forwarded: 2, lost: 0 });
});

test("an Upgrade in HTTP/1.0 is no upgrade", async () => {
  const { upstream, dial } = await splice();
  const client = await dial();
  client.send("GET / HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  const link = await upstream.accept();
  await link.receive("\r\n\r\n");
  expect(link.text).toBe("GET / HTTP/1.0\r\nConnection: Upgrade\r\n\r\n");
});

test.each([
  ["ends its side with the second", (client: RawClient) => client.send(get + get + get).socket.end()],
  [
    "ends its side after",
    (client: RawClient, turn: () => Promise<void>) => {
      client.send(get + get + get);
      return turn().then(() => client.socket.end());
    },
  ],
])("three pipelined requests of a client that %s: three answers, then FIN", async (_, send) => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  await send(client, server.idle);
  const link = await upstream.accept();
  await server.idle();
  for (const count of [1, 2, 3]) {
    await link.receive(get, count);
    link.send(ok(`answer ${count}`));
  }
  expect(await client.end()).toBe(ok("answer 1") + ok("answer 2") + ok("answer 3"));
  expect(server.totals).toMatchObject({ forwarded: 3, lost: 0 });
});

test("pipelined requests of a client that ended its side, answered there and here in turn", async () => {
  const health = "GET /health HTTP/1.1\r\nHost: h\r\n\r\n";
  const { server, upstream, dial } = await splice({
    local: ({ target }) => (target === "/health" ? { status: 200, body: "healthy" } : undefined),
  });
  const client = await dial();
  client.send(get + health + health + get).socket.end();
  const link = await upstream.accept();
  await link.receive(get);
  await server.idle();
  link.send(ok("one"));
  await link.receive(get, 2);
  link.send(ok("two"));
  const text = await client.end();
  expect(text.split("healthy")).toHaveLength(3);
  expect(text.endsWith(ok("two"))).toBe(true);
});

test("half a request behind a whole one, then the client's end: one answer, then FIN", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send(get + post(9)).socket.end();
  const link = await upstream.accept();
  await link.receive(get);
  await server.idle();
  link.send(ok("one"));
  expect(await client.end()).toBe(ok("one"));
  expect(server.counts().inFlight).toBe(0);
});

test("a request that cannot be framed gets 400 and a FIN, and reaches nobody", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send(
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /evil HTTP/1.1\r\nHost: h\r\n\r\n",
  );
  const text = await client.end();
  expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  expect(text).toContain("cellkit-outcome: not-run\r\n");
  expect(text).toContain("connection: close\r\n");
  expect(text).toContain("both Content-Length and Transfer-Encoding");
  expect(text.split("HTTP/1.1")).toHaveLength(2);
  expect(upstream.dials).toBe(0);
  expect(server.totals.malformed).toBe(1);
});

test("a body that cannot be framed cuts the upstream and gets 400 with an unknown outcome", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
  const link = await upstream.accept();
  await link.receive("a\r\n");
  client.send("zz\r\n");
  const text = await client.end();
  expect(text).toMatch(/^HTTP\/1\.1 400 /);
  expect(text).toContain("cellkit-outcome: unknown\r\n");
  await link.end();
  expect(server.counts().inFlight).toBe(0);
});

test("a body that cannot be framed after the answer's head only ends the connection", async () => {
  const { upstream, dial } = await splice();
  const client = await dial();
  client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
  const link = await upstream.accept();
  await link.receive("a\r\n");
  const head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
  link.send(head);
  await client.receive(head);
  client.send("zz\r\n");
  expect(await client.end()).toBe(head);
});

test("an answer of our own keeps the connection, and forwarded requests mix with it", async () => {
  const { server, upstream, dial } = await splice({
    local: ({ method, target }) => (target === "/__celld/health" ? { status: 200, body: method } : undefined),
  });
  const client = await dial();
  const health = "GET /__celld/health HTTP/1.1\r\nHost: h\r\n\r\n";
  client.send(health + health + get + health);
  const link = await upstream.accept();
  await link.receive(get);
  link.send(ok("app"));
  await client.receive("GET", 3);
  expect(client.text.match(/(?<=\r\n\r\n)(GET|app)/g)).toEqual(["GET", "GET", "app", "GET"]);
  expect(server.totals).toMatchObject({ local: 3, forwarded: 1 });
  expect(server.counts()).toEqual({ connections: 1, inFlight: 0, sockets: 0 });
});

test("an answer of our own to a request with a body closes, and the body is read on", async () => {
  const { server, upstream, dial } = await splice({ local: () => ({ status: 404, body: "no" }) });
  const client = await dial();
  client.send(post(4_000_000)).send(Buffer.alloc(2_000_000));
  const text = await client.end();
  expect(text).toMatch(/^HTTP\/1\.1 404 Not Found\r\nconnection: close\r\n[\s\S]*no$/);
  client.send(Buffer.alloc(2_000_000));
  client.socket.end();
  await client.until("close", () => server.counts().connections === 0);
  expect(client.error).toBeUndefined();
  expect(upstream.dials).toBe(0);
});

test.each([
  ["asks for it", "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"],
  ["speaks HTTP/1.0", "GET / HTTP/1.0\r\n\r\n"],
])("an answer of our own closes when the client %s", async (_, request) => {
  const { dial } = await splice({ local: () => ({ status: 200, body: "own" }) });
  const client = await dial();
  client.send(request);
  expect(await client.end()).toMatch(/^HTTP\/1\.1 200 OK\r\nconnection: close\r\n[\s\S]*own$/);
});

test("an answer of our own may ask for the close itself", async () => {
  const { dial } = await splice({ local: () => ({ status: 200, close: true }) });
  const client = await dial();
  client.send(get);
  expect(await client.end()).toContain("connection: close");
});

test.each([
  ["the client asked for it", "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", ok("x")],
  ["the client speaks HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", ok("x")],
  ["the answer says so", get, ok("x", "Connection: close\r\n")],
  ["the answer is HTTP/1.0", get, "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx"],
])("the connection ends after the answer when %s", async (_, request, answer) => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send(request);
  const link = await upstream.accept();
  await link.receive(request);
  link.send(answer);
  expect(await client.end()).toBe(answer);
  client.socket.end();
  await client.until("close", () => server.counts().connections === 0);
});

test("an answer without a length ends when the upstream does", async () => {
  const { upstream, dial } = await splice();
  const client = await dial();
  client.send(get);
  const link = await upstream.accept();
  await link.receive(get);
  link.send("HTTP/1.1 200 OK\r\n\r\npart ");
  await client.receive("part ");
  link.send("by part");
  link.socket.end();
  expect(await client.end()).toBe("HTTP/1.1 200 OK\r\n\r\npart by part");
});

test("an answer to HEAD has no body whatever it declares", async () => {
  const { upstream, dial } = await splice();
  const client = await dial();
  const head = "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n";
  client.send(head);
  const link = await upstream.accept();
  await link.receive(head);
  link.send("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n");
  await client.receive("99\r\n\r\n");
  client.send(get);
  await link.receive(get);
});

test("an early answer passes while the upload goes on, and the connection is kept", async () => {
  const { upstream, dial } = await splice();
  const client = await dial();
  client.send(`${post(6)}abc`);
  const link = await upstream.accept();
  await link.receive("abc");
  link.send(ok("early"));
  await client.receive("early");
  client.send(`def${get}`);
  await link.receive(`def${get}`);
  link.send(ok("second"));
  await client.receive("second");
  expect(upstream.dials).toBe(1);
});

test("an upload that nobody reads any more after its early answer is ended without a reset", async () => {
  const { upstream, dial } = await splice();
  const client = await dial();
  client.send(`${post(1_000_000)}abc`);
  const link = await upstream.accept();
  await link.receive("abc");
  link.send(ok("early"));
  await client.receive("early");
  link.socket.destroy();
  client.send(Buffer.alloc(500_000));
  expect(await client.end()).toBe(ok("early"));
});

test("a client that half-closes after its request still gets the answer", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send(get);
  client.socket.end();
  const link = await upstream.accept();
  await link.receive(get);
  await server.idle();
  expect(link.ended).toBe(false);
  link.send(ok("still"));
  expect(await client.end()).toBe(ok("still"));
});

test("a client that leaves within its upload or its answer takes the upstream's connection along", async () => {
  const { server, upstream, dial } = await splice();
  const uploading = await dial();
  uploading.send(`${post(6)}abc`);
  const first = await upstream.accept();
  await first.receive("abc");
  uploading.socket.end();
  await first.until("end", () => first.ended || first.error !== undefined);
  const waiting = await dial();
  waiting.send(get);
  const second = await upstream.accept();
  await second.receive(get);
  waiting.socket.resetAndDestroy();
  await second.until("end", () => second.ended || second.error !== undefined);
  await second.until("close", () => server.counts().inFlight === 0);
});

test("CONNECT is not offered", async () => {
  const { upstream, dial } = await splice();
  const client = await dial();
  client.send("CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n");
  expect(await client.end()).toMatch(/^HTTP\/1\.1 501 /);
  expect(upstream.dials).toBe(0);
});

test("a link that was idle too long is not used again", async () => {
  const clock = heldClock();
  const { upstream, dial } = await splice({ upstreamReuseMs: 100 });
  const { client, link } = await dialAndServe(upstream, dial);
  clock.ms += 100;
  client.send(get);
  await link.receive(get, 2);
  link.send(ok("second"));
  await client.receive("second");
  clock.ms += 101;
  client.send(get);
  const second = await upstream.accept();
  await second.receive(get);
  await link.end();
  expect(link.text).toBe(get + get);
});

test("a link that the upstream ended while idle is not used again", async () => {
  const { server, upstream, dial } = await splice();
  const { client, link } = await dialAndServe(upstream, dial);
  link.socket.end();
  await link.end();
  await server.idle();
  client.send(get);
  await (await upstream.accept()).receive(get);
});

test("a link on which the upstream speaks unasked is not used again", async () => {
  const { server, upstream, dial } = await splice();
  const { client, link } = await dialAndServe(upstream, dial);
  link.send(ok("poison"));
  await link.end();
  await server.idle();
  client.send(get);
  const second = await upstream.accept();
  await second.receive(get);
  second.send(ok("clean"));
  await client.receive("clean");
  expect(client.text).toBe(ok("clean"));
});

test("bytes behind an answer do not become the next one", async () => {
  const { upstream, dial } = await splice();
  const client = await dial();
  client.send(get);
  const link = await upstream.accept();
  await link.receive(get);
  link.send(ok("one") + ok("poison"));
  await client.receive("one");
  client.send(get);
  const second = await upstream.accept();
  await second.receive(get);
  second.send(ok("two"));
  await client.receive("two");
  expect(client.text).toBe(ok("one") + ok("two"));
});

test("a new child's socket is used from the next request on", async () => {
  const other = await startUpstream();
  let path: string | undefined;
  const { upstream, dial } = await splice({}, (first) => path ?? first);
  const { client } = await dialAndServe(upstream, dial);
  path = other.path;
  client.send(get);
  await (await other.accept()).receive(get);
});

/** More than all the kernel's buffers on the way hold. */
const size = 48 * 1024 * 1024;

test("slow clients slow the upstream, and each gets every byte of its own answer", async () => {
  const { server, upstream, dial } = await splice();
  const head = `HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`;
  const pairs: [RawClient, RawClient, string][] = [];
  for (const letter of ["a", "b"]) {
    const client = await dial();
    client.socket.pause();
    client.send(get);
    const link = await upstream.accept();
    await link.receive(get);
    link.send(head).fill(letter, size);
    pairs.push([client, link, letter]);
  }
  for (const [, link] of pairs) await link.stalled(server.idle);
  await Promise.all(pairs.map(([client, , letter]) => client.drained(head, letter, size)));
});

test("a slow upstream slows the client, and gets every byte", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send(post(size));
  const link = await upstream.accept();
  await link.receive("\r\n\r\n");
  link.socket.pause();
  client.fill("a", size);
  await client.stalled(server.idle);
  await link.drained("", "a", size);
});
