// Upgraded connections: bytes pass as they are, and the client gets a close frame whenever there is a place for one.
import { expect, test } from "vitest";
import type { SpliceServerOptions } from "../src/options.ts";
import { frame } from "./support/frames.ts";
import type { RawClient } from "./support/raw-client.ts";
import { type Spliced, splice } from "./support/spliced.ts";

const handshake =
  "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n";
const switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

interface Upgraded extends Spliced {
  client: RawClient;
  link: RawClient;
}

async function upgrade(options: SpliceServerOptions = {}): Promise<Upgraded> {
  const spliced = await splice({ closeWaitMs: 600_000, ...options });
  const client = await spliced.dial();
  client.send(handshake);
  const link = await spliced.upstream.accept();
  await link.receive(handshake);
  link.send(switched);
  await client.receive(switched);
  client.bytes = Buffer.alloc(0);
  link.bytes = Buffer.alloc(0);
  return { ...spliced, client, link };
}

function closeBytes(code: number, reason: string, masked = false): Buffer {
  const payload = Buffer.concat([Buffer.from([code >> 8, code & 255]), Buffer.from(reason)]);
  return frame({ opcode: 8, payload, masked });
}

const hello = frame({ payload: Buffer.from("hello") });
const maskedHello = frame({ payload: Buffer.from("hello"), masked: true });
const unavailable = closeBytes(1012, "owner unavailable");
const draining = closeBytes(1012, "node draining");
const echo = closeBytes(1012, "", true);

test("frames pass byte for byte in both directions and count as a socket, not as in flight", async () => {
  const { server, client, link } = await upgrade();
  expect(server.counts()).toEqual({ connections: 1, inFlight: 0, sockets: 1 });
  client.send(maskedHello);
  await link.until("frame", () => link.bytes.equals(maskedHello));
  link.send(hello);
  await client.until("frame", () => client.bytes.equals(hello));
  expect(server.totals.upgraded).toBe(1);
});

test("frames that came with the handshake's last bytes pass too", async () => {
  const { upstream, dial } = await splice();
  const client = await dial();
  client.send(Buffer.concat([Buffer.from(handshake), maskedHello]));
  const link = await upstream.accept();
  await link.receive(handshake);
  link.send(Buffer.concat([Buffer.from(switched), hello]));
  await client.until("frame", () => client.bytes.subarray(switched.length).equals(hello));
  await link.until("frame", () => link.bytes.subarray(handshake.length).equals(maskedHello));
});

test("an upgrade that is answered otherwise leaves an ordinary connection", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send(handshake);
  const link = await upstream.accept();
  await link.receive(handshake);
  link.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  await client.receive("404");
  client.send("GET /b HTTP/1.1\r\nHost: h\r\n\r\n");
  await link.receive("GET /b");
  expect(server.counts().sockets).toBe(0);
});

test.each([
  ["ends", (link: RawClient) => link.socket.end()],
  ["is destroyed", (link: RawClient) => link.socket.destroy()],
])(
  "an upstream that %s without a close frame: 1012 owner unavailable, then FIN after the echo",
  async (_, lose) => {
    const { server, client, link } = await upgrade();
    link.send(hello);
    await client.until("frame", () => client.bytes.equals(hello));
    lose(link);
    await client.until("close frame", () => client.bytes.equals(Buffer.concat([hello, unavailable])));
    expect(client.ended).toBe(false);
    client.send(maskedHello).send(echo);
    await client.end();
    client.socket.end();
    await client.until("close", () => server.counts().sockets === 0);
    expect(client.error).toBeUndefined();
  },
);

test("the reason is an option", async () => {
  const { client, link } = await upgrade({ ownerUnavailable: { code: 1013, reason: "later" } });
  link.socket.end();
  await client.until("close frame", () => client.bytes.equals(closeBytes(1013, "later")));
});

test("an upstream lost between two fragments of a message: the close frame stands between them", async () => {
  const { client, link } = await upgrade();
  const fragment = frame({ final: false, payload: Buffer.from("half") });
  link.send(fragment);
  link.socket.end();
  await client.until("close frame", () => client.bytes.equals(Buffer.concat([fragment, unavailable])));
});

test("an upstream lost within a frame: nothing can be written, only a FIN", async () => {
  const { client, link } = await upgrade();
  link.send(hello.subarray(0, 4));
  link.socket.end();
  await client.end();
  expect(client.bytes.equals(hello.subarray(0, 4))).toBe(true);
});

test("an upstream that closed in order: its close frame, no second one, then FIN", async () => {
  const { client, link } = await upgrade();
  const close = closeBytes(4000, "bye");
  link.send(close);
  await client.until("close frame", () => client.bytes.equals(close));
  client.send(closeBytes(4000, "", true));
  await link.until("echo", () => link.bytes.length > 0);
  link.socket.end();
  await client.end();
  expect(client.bytes.equals(close)).toBe(true);
});

test("an upstream that closed in order while bytes were on their way to it: its close frame, not 1012", async () => {
  const { server, client, link } = await upgrade();
  const close = closeBytes(1009, "too long");
  // It reads no more, so that its close is a reset, and the next write to it fails.
  link.socket.pause();
  client.send(maskedHello);
  await server.idle();
  client.send(maskedHello);
  link.socket.write(close, () => link.socket.destroy());
  await client.end();
  expect(client.bytes.equals(close)).toBe(true);
});

test("an upstream lost after the client's close frame: the client's own code comes back", async () => {
  const { client, link } = await upgrade();
  client.send(closeBytes(3001, "done", true));
  await link.until("close frame", () => link.bytes.length > 0);
  link.socket.end();
  await client.end();
  expect(client.bytes.equals(closeBytes(3001, ""))).toBe(true);
});

test("a client that does not answer the close frame is let go after a while", async () => {
  const { server, client, link } = await upgrade({ closeWaitMs: 50 });
  link.socket.end();
  await client.until("close frame", () => client.bytes.equals(unavailable));
  await client.until("cut", () => server.counts().sockets === 0);
});

test("closeSockets writes 1012 node draining, passes the echo on, and ends both sides", async () => {
  const { server, client, link } = await upgrade();
  server.closeSockets(1012, "node draining");
  server.closeSockets(1012, "node draining");
  await client.until("close frame", () => client.bytes.equals(draining));
  link.send(hello);
  client.send(maskedHello).send(echo);
  await link.until("echo", () => link.bytes.equals(Buffer.concat([maskedHello, echo])));
  await link.end();
  await client.end();
  expect(client.bytes.equals(draining)).toBe(true);
  client.send(maskedHello);
  client.socket.end();
  await client.until("the client to be gone", () => server.counts().connections === 0);
  // The upstream has not let go of its side: the cell behind it is still held.
  expect(server.counts().sockets).toBe(1);
  link.socket.end();
  await server.finished();
  expect(link.bytes.equals(Buffer.concat([maskedHello, echo]))).toBe(true);
});

test("an upstream that does not let go is cut after a while", async () => {
  const { server, client, link } = await upgrade({ closeWaitMs: 50 });
  client.socket.destroy();
  await link.end();
  await server.finished();
});

test("closeSockets within a frame waits for its end and drops what comes after", async () => {
  const { server, client, link } = await upgrade();
  link.send(hello.subarray(0, 4));
  await client.until("half a frame", () => client.bytes.length === 4);
  server.closeSockets(1012, "node draining");
  link.send(Buffer.concat([hello.subarray(4), hello]));
  await client.until("close frame", () => client.bytes.equals(Buffer.concat([hello, draining])));
});

test("closeSockets within the upstream's own close frame adds none", async () => {
  const { server, client, link } = await upgrade();
  const close = closeBytes(4000, "bye");
  link.send(close.subarray(0, 3));
  await client.until("half a frame", () => client.bytes.length === 3);
  server.closeSockets(1012, "node draining");
  link.send(close.subarray(3));
  await client.until("close frame", () => client.bytes.equals(close));
  client.send(closeBytes(4000, "", true));
  link.socket.end();
  await client.end();
  expect(client.bytes.equals(close)).toBe(true);
});

test("closeSockets within a frame that never ends cuts after a while", async () => {
  const { server, client, link } = await upgrade({ closeWaitMs: 50 });
  link.send(hello.subarray(0, 4));
  await client.until("half a frame", () => client.bytes.length === 4);
  server.closeSockets(1012, "node draining");
  await server.finished();
  expect(client.bytes.length).toBe(4);
});

test("closeSockets while the upstream's own close frame is on its way adds none", async () => {
  const { server, client, link } = await upgrade();
  const close = closeBytes(4000, "bye");
  link.send(close);
  await client.until("close frame", () => client.bytes.equals(close));
  server.closeSockets(1012, "node draining");
  client.send(closeBytes(4000, "", true));
  link.socket.end();
  await client.end();
  expect(client.bytes.equals(close)).toBe(true);
});

test("closeSockets after the client's close frame ends at once", async () => {
  const { server, client, link } = await upgrade();
  client.send(closeBytes(1000, "", true));
  await link.until("close frame", () => link.bytes.length > 0);
  server.closeSockets(1012, "node draining");
  await client.end();
  expect(client.bytes.equals(draining)).toBe(true);
});

test("an upgrade that was in flight when the sockets were closed is closed at once", async () => {
  const { server, upstream, dial } = await splice();
  const client = await dial();
  client.send(handshake);
  const link = await upstream.accept();
  await link.receive(handshake);
  server.drain();
  server.closeSockets(1012, "node draining");
  link.send(switched);
  await client.until("close frame", () => client.bytes.subarray(switched.length).equals(draining));
  expect(client.text.startsWith(switched)).toBe(true);
});

test("a drain alone leaves sockets open", async () => {
  const { server, client, link } = await upgrade();
  server.drain();
  link.send(hello);
  await client.until("frame", () => client.bytes.equals(hello));
  client.send(maskedHello);
  await link.until("frame", () => link.bytes.equals(maskedHello));
});

test("a client that ends without a close frame ends the upstream's side", async () => {
  const { server, client, link } = await upgrade();
  client.send(maskedHello);
  client.socket.end();
  await link.end();
  expect(link.bytes.equals(maskedHello)).toBe(true);
  link.socket.end();
  await client.until("close", () => server.counts().sockets === 0);
});

test("a client that resets ends the upstream's side", async () => {
  const { server, client, link } = await upgrade();
  client.socket.resetAndDestroy();
  await link.until("end", () => link.ended || link.error !== undefined);
  link.socket.end();
  await link.until("close", () => server.counts().sockets === 0);
});

test("a client that had ended its side when the upgrade came is passed on so", async () => {
  const { upstream, dial } = await splice();
  const client = await dial();
  client.send(handshake);
  client.socket.end();
  const link = await upstream.accept();
  await link.receive(handshake);
  link.send(switched);
  await link.end();
});

test("no reason that fits no close frame is taken", async () => {
  const { server } = await splice();
  expect(() => server.closeSockets(1006, "")).toThrow("1006 may not stand in a close frame");
  expect(() => server.closeSockets(1012, "x".repeat(124))).toThrow("reason has 124 bytes");
});

/** More than all the kernel's buffers on the way hold, and the header of one frame so long. */
const size = 48 * 1024 * 1024;
const longFrame = Buffer.from([0x82, 127, 0, 0, 0, 0, size >> 24, (size >> 16) & 255, 0, 0]).toString(
  "latin1",
);

test("slow sides slow each other, and every byte arrives", async () => {
  const { server, client, link } = await upgrade();
  client.socket.pause();
  link.send(Buffer.from(longFrame, "latin1")).fill("a", size);
  await link.stalled(server.idle);
  await client.drained(longFrame, "a", size);
  link.socket.pause();
  client.send(Buffer.from(longFrame, "latin1")).fill("b", size);
  await client.stalled(server.idle);
  await link.drained(longFrame, "b", size);
});

test("an upgraded connection that stalls is cut all the same once its close frame went unanswered", async () => {
  const { server, client, link } = await upgrade({ closeWaitMs: 50 });
  client.socket.pause();
  link.send(Buffer.from(longFrame, "latin1")).fill("a", size);
  await link.stalled(server.idle);
  server.closeSockets(1012, "node draining");
  await server.finished();
});
