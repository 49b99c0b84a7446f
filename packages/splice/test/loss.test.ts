// What a client gets when the upstream is missing, dies, or talks nonsense; and when the client is too slow.
import { expect, onTestFinished, test } from "vitest";
import { heldClock } from "../../../tools/test-support/held-clock.ts";
import { OptionError } from "../src/errors.ts";
import { createSpliceServer } from "../src/server.ts";
import { dialAndServe, get, ok, post, splice } from "./support/spliced.ts";

test("no child: 503, not run", async () => {
  const { server, dial } = await splice({}, () => undefined);
  const client = await dial();
  client.send(get);
  const text = await client.end();
  expect(text).toMatch(/^HTTP\/1\.1 503 /);
  expect(text).toContain(
    "proxy-status: celld; error=destination_unavailable\r\ncellkit-outcome: not-run\r\n",
  );
  expect(text).toContain("connection: close\r\n");
  expect(server.totals.unavailable).toBe(1);
});

test("no child: the answer may be chosen", async () => {
  const { dial } = await splice({ unavailable: { status: 503, body: "starting" } }, () => undefined);
  const client = await dial();
  client.send(get);
  expect(await client.end()).toMatch(/connection: close[\s\S]*starting$/);
});

test("a dial that fails: 503, not run", async () => {
  const { server, dial } = await splice({}, (path) => `${path}.gone`);
  const client = await dial();
  client.send(get);
  const text = await client.end();
  expect(text).toMatch(/^HTTP\/1\.1 503 /);
  expect(text).toContain("proxy-status: celld; error=connection_refused\r\ncellkit-outcome: not-run\r\n");
  expect(server.totals).toMatchObject({ unavailable: 1, lost: 0 });
  expect(server.counts().inFlight).toBe(0);
});

test.each([
  ["nothing", ""],
  ["half a head", "HTTP/1.1 200 OK\r\nContent-Le"],
])(
  "an upstream that dies after %s of its answer: 502, unknown, and no byte of the answer",
  async (_, part) => {
    const { server, upstream, dial } = await splice();
    const client = await dial();
    client.send(get);
    const link = await upstream.accept();
    await link.receive(get);
    link.send(part);
    link.socket.end();
    const text = await client.end();
    expect(text).toMatch(/^HTTP\/1\.1 502 Bad Gateway\r\n/);
    expect(text).toContain(
      "proxy-status: celld; error=connection_terminated\r\ncellkit-outcome: unknown\r\n",
    );
    expect(text).toContain("connection: close\r\n");
    expect(server.totals.lost).toBe(1);
    expect(server.counts().inFlight).toBe(0);
  },
);

test("an upstream that dies after an interim answer: the interim one, then 502", async () => {
  const { upstream, dial } = await splice();
  const client = await dial();
  client.send(get);
  const link = await upstream.accept();
  await link.receive(get);
  link.send("HTTP/1.1 100 Continue\r\n\r\n");
  await client.receive("100 Continue");
  link.socket.end();
  expect(await client.end()).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 502 /);
});

test.each([
  ["by length", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"],
  ["chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"],
])("an upstream that dies within an answer %s: the client sees it cut", async (_, part) => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send(get);
  const link = await upstream.accept();
  await link.receive(get);
  link.send(part);
  await client.receive(part);
  link.socket.destroy();
  expect(await client.end()).toBe(part);
  expect(server.totals.lost).toBe(1);
});

test("an answer without a length that breaks off by an error: a reset, since a FIN would make it look whole", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  // Unread bytes in its buffer make the upstream's close a reset.
  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9000000\r\n\r\nabc");
  const link = await upstream.accept();
  await link.receive("abc");
  link.send("HTTP/1.1 200 OK\r\n\r\npart");
  await client.receive("part");
  link.socket.pause();
  client.send(Buffer.alloc(1_000_000));
  await server.idle();
  link.socket.destroy();
  await client.until("reset", () => client.error !== undefined || client.ended);
  expect(client.error).toBe("ECONNRESET");
});

test("an upstream that answered an upload and closed without reading it: its answer, not 502", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send(post(9_000_000));
  const link = await upstream.accept();
  await link.receive(post(9_000_000));
  link.socket.pause();
  client.send("abc");
  await server.idle();
  client.send("abc");
  link.socket.write("HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", () =>
    link.socket.destroy(),
  );
  expect(await client.end()).toMatch(/^HTTP\/1\.1 413 /);
  expect(server.totals.lost).toBe(0);
});

test.each([
  ["no answer", "garbage\r\n\r\n"],
  ["an answer with two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"],
  ["101 to a request that asked for none", "HTTP/1.1 101 Switching Protocols\r\n\r\n"],
])("an upstream that sends %s: 502, unknown", async (_, answer) => {
  const { upstream, dial } = await splice();
  const client = await dial();
  client.send(get);
  const link = await upstream.accept();
  await link.receive(get);
  link.send(answer);
  const text = await client.end();
  expect(text).toMatch(/^HTTP\/1\.1 502 /);
  expect(text).toContain("error=http_protocol_error\r\ncellkit-outcome: unknown\r\n");
  await link.end();
});

test("an upstream whose chunks go wrong: the client sees the answer cut", async () => {
  const { upstream, dial } = await splice();
  const client = await dial();
  client.send(get);
  const link = await upstream.accept();
  await link.receive(get);
  const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  link.send(head);
  await client.receive(head);
  link.send("zz\r\n");
  expect(await client.end()).toBe(head);
});

test("a head that takes too long gets 408", async () => {
  const { server, dial } = await splice({ headTimeoutMs: 40 });
  const client = await dial();
  client.send("GET / HT");
  const text = await client.end();
  expect(text).toMatch(/^HTTP\/1\.1 408 /);
  expect(text).toContain("cellkit-outcome: not-run\r\n");
  expect(server.totals.timedOut).toBe(1);
});

test("a client that is silent too long before its first request gets a FIN", async () => {
  const { dial } = await splice({ idleTimeoutMs: 60 });
  const silent = await dial();
  expect(await silent.end()).toBe("");
});

test("a client that is silent too long after an answer gets a FIN", async () => {
  const clock = heldClock();
  const { server, upstream, dial } = await splice({ idleTimeoutMs: 100 });
  const silent = await dial();
  await silent.until("connection", () => server.counts().connections === 1);
  clock.ms += 1;
  const { client } = await dialAndServe(upstream, dial);
  clock.ms += 99;
  await silent.end();
  expect(client.ended).toBe(false);
  clock.ms += 1;
  expect(await client.end()).toBe("");
});

test("a request that waits for its answer is not idle", async () => {
  const clock = heldClock();
  const { server, upstream, dial } = await splice({ idleTimeoutMs: 100, headTimeoutMs: 100 });
  const client = await dial();
  client.send(get);
  const link = await upstream.accept();
  await link.receive(get);
  const other = await dial();
  await other.until("two connections", () => server.counts().connections === 2);
  clock.ms += 100;
  await other.end();
  await server.idle();
  link.send(ok("late"));
  await client.receive("late");
});

test("a client that stops reading its answer is cut after the idle time, and the upstream with it", async () => {
  const clock = heldClock();
  const { server, upstream, dial } = await splice({ idleTimeoutMs: 100 });
  const client = await dial();
  client.socket.pause();
  client.send(get);
  const link = await upstream.accept();
  await link.receive(get);
  const size = 48 * 1024 * 1024;
  link.send(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`).fill("a", size);
  await link.stalled(server.idle);
  expect(server.counts().inFlight).toBe(1);
  await link.until("the server to let go", () => {
    clock.ms += 1;
    return server.counts().connections === 0;
  });
  await link.until("end", () => link.ended || link.error !== undefined);
});

test("a client that reads slowly, but reads, is not cut", async () => {
  const clock = heldClock();
  const { server, upstream, dial } = await splice({ idleTimeoutMs: 100 });
  const client = await dial();
  client.send(get);
  const link = await upstream.accept();
  await link.receive(get);
  const size = 48 * 1024 * 1024;
  const head = `HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`;
  client.socket.pause();
  client.socket.removeAllListeners("data");
  // Forty reads take the idle time; all of it takes several.
  const beginMs = clock.ms;
  const pace = setInterval(() => {
    if (client.socket.read() !== null) clock.ms += 2.5;
  }, 4);
  onTestFinished(() => clearInterval(pace));
  link.send(head).fill("a", size);
  await client.until("two idle times", () => clock.ms - beginMs > 200);
  expect(server.counts().connections).toBe(1);
});

test("a client that half-closes before its head is whole gets a FIN", async () => {
  const { dial } = await splice();
  const client = await dial();
  client.send("GET / HT");
  client.socket.end();
  expect(await client.end()).toBe("");
});

test("close cuts what is in flight and is the same promise each time", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send(get);
  await (await upstream.accept()).receive(get);
  const closed = server.close();
  expect(server[Symbol.asyncDispose]()).toBe(closed);
  await closed;
  await client.until("cut", () => client.ended || client.error !== undefined);
  expect(server.counts()).toEqual({ connections: 0, inFlight: 0, sockets: 0 });
});

test("close lets a refusal that is read on come to its end", async () => {
  const { server, dial } = await splice({ lingerMs: 50 });
  server.drain();
  const client = await dial();
  client.send(get);
  await client.receive("draining");
  const closed = server.close();
  await client.end();
  await closed;
});

test("a server that never listened closes", async () => {
  await createSpliceServer(() => undefined).close();
});

test("a port that is taken is an error that says so", async () => {
  const { port } = await splice();
  const second = createSpliceServer(() => undefined);
  await expect(second.listen("127.0.0.1", port)).rejects.toMatchObject({
    code: "CELLKIT_SPLICE_LISTEN",
    message: expect.stringContaining("another process holds it"),
  });
  await second.close();
});

test.each([
  [{ idleTimeoutMs: -1 }, "idleTimeoutMs is -1"],
  [{ lingerMs: Number.NaN }, "lingerMs is NaN"],
  [{ headTimeoutMs: 2 ** 31 }, "headTimeoutMs is 2147483648"],
  [{ clientHeader: { name: "a b", value: () => 1 } }, 'clientHeader.name is "a b"'],
  [{ strippedRequestFields: ["X-Upper"] }, 'strippedRequestFields has "X-Upper"'],
  [{ strippedRequestFields: [""] }, 'strippedRequestFields has ""'],
  [{ strippedRequestFields: ["x-a", "content-"] }, 'has "content-": content-length decides'],
])("the options %j are refused", (options, message) => {
  expect(() => createSpliceServer(() => undefined, options)).toThrow(message);
  expect(() => createSpliceServer(() => undefined, options)).toThrow(OptionError);
});
