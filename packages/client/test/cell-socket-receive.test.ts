/** Receiving: spec rows W35, W36, W42, W44, and what is kept for the first reader. */
import { describe, expect, it } from "vitest";
import type { CellSocketOptions } from "../src/cell-socket-options.ts";
import { SocketFatalError } from "../src/errors.ts";
import { until } from "./support/socket-node.ts";
import { eventsOf, fleetOf, socketTo, startNode } from "./support/socket-scope.ts";

const QUIET: CellSocketOptions = { keepalive: false, reconnect: { minUptimeMs: 0 } };

describe("for await", () => {
  it("pauses reading at the bound, resumes, and loses nothing (W35)", async () => {
    const a = await startNode();
    const socket = socketTo(fleetOf([a.url]), { ...QUIET, receive: { maxMessages: 16 } });
    const iterator = socket[Symbol.asyncIterator]();
    await socket.opened();
    const count = 2_000;
    const filling = "x".repeat(10_000);
    const peer = a.sockets[0];
    for (let n = 0; n < count; n += 1) peer?.send(`${n} ${filling}`);
    expect((await iterator.next()).value).toBe(`0 ${filling}`);
    let still = 0;
    let last = -1;
    // 20 MB do not fit into the kernel's buffers: what is left has to stand still at the peer.
    await until("the peer to be held up", () => {
      still = peer?.bufferedAmount === last ? still + 1 : 0;
      last = peer?.bufferedAmount ?? 0;
      return still > 50;
    });
    expect(last).toBeGreaterThan(1_000_000);
    for (let n = 1; n < count; n += 1) expect((await iterator.next()).value).toBe(`${n} ${filling}`);
  });

  it("goes on over a reconnect, and ends with a clean close (W36)", async () => {
    const a = await startNode();
    a.accepted = (socket, n) => {
      socket.send(`from ${n}`);
      if (n === 1) setTimeout(() => socket.terminate(), 10);
      else socket.send(Uint8Array.of(1, 2, 3), () => socket.close(1000));
    };
    const got: unknown[] = [];
    for await (const message of socketTo(fleetOf([a.url]), QUIET)) got.push(message);
    expect(got).toEqual(["from 1", "from 2", Uint8Array.of(1, 2, 3).buffer]);
  });

  it("gives what came before, then throws when the socket failed (W36)", async () => {
    const a = await startNode();
    a.accepted = (socket) => socket.send("last", () => socket.close(4400, "bad client"));
    const got: unknown[] = [];
    const reading = (async () => {
      for await (const message of socketTo(fleetOf([a.url]), QUIET)) got.push(message);
    })();
    await expect(reading).rejects.toBeInstanceOf(SocketFatalError);
    expect(got).toEqual(["last"]);
  });

  it("misses nothing that came between opened() and the first reader", async () => {
    const a = await startNode();
    a.accepted = (socket) => {
      for (let n = 0; n < 5; n += 1) socket.send(String(n));
    };
    const socket = socketTo(fleetOf([a.url]), { ...QUIET, receive: { maxMessages: 3 } });
    await socket.opened();
    a.sockets[0]?.ping();
    await new Promise((resolve) => a.sockets[0]?.once("pong", resolve));
    const iterator = socket[Symbol.asyncIterator]();
    // Nobody had said that they would read: the newest within the bounds are kept.
    const got = [await iterator.next(), await iterator.next(), await iterator.next()];
    expect(got.map(({ value }) => value)).toEqual(["2", "3", "4"]);
  });

  it("gives every reader every message, and leaving one loop leaves the socket open", async () => {
    const a = await startNode();
    const socket = socketTo(fleetOf([a.url]), { ...QUIET, receive: { maxMessages: 2 } });
    const [one, two] = [socket[Symbol.asyncIterator](), socket[Symbol.asyncIterator]()];
    const both = [one.next(), two.next()];
    await socket.opened();
    for (let n = 0; n < 9; n += 1) a.sockets[0]?.send(String(n));
    expect((await Promise.all(both)).map(({ value }) => value)).toEqual(["0", "0"]);
    expect(await two.return?.()).toEqual({ done: true, value: undefined });
    expect(await two.next()).toEqual({ done: true, value: undefined });
    for (let n = 1; n < 9; n += 1) expect((await one.next()).value).toBe(String(n));
    expect(socket.state).toBe("open");
  });

  it("ends for readers who wait when the socket is closed, and for later ones at once", async () => {
    const a = await startNode();
    const socket = socketTo(fleetOf([a.url]), QUIET);
    const waiting = socket[Symbol.asyncIterator]().next();
    await socket.opened();
    await socket.close();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(await socket[Symbol.asyncIterator]().next()).toEqual({ done: true, value: undefined });
  });
});

describe("a message", () => {
  it.each([
    ["arraybuffer", (data: unknown) => data instanceof ArrayBuffer && data.byteLength === 3],
    ["nodebuffer", (data: unknown) => Buffer.isBuffer(data) && data.length === 3],
    [
      "uint8array",
      (data: unknown) => data instanceof Uint8Array && !Buffer.isBuffer(data) && data.length === 3,
    ],
  ] as const)("is given as %s (W44)", async (binaryType, fits) => {
    const a = await startNode();
    a.accepted = (socket) => {
      socket.send(Uint8Array.of(1, 2, 3));
      socket.send("text");
    };
    const socket = socketTo(fleetOf([a.url]), QUIET);
    socket.binaryType = binaryType;
    const messages: unknown[] = [];
    socket.onmessage = ({ data }) => messages.push(data);
    await until("both", () => messages.length === 2);
    expect(messages[0]).toSatisfy(fits);
    expect(messages[1]).toBe("text");
  });

  it("above maxPayloadBytes closes for good with 1009 (W42)", async () => {
    const a = await startNode();
    a.accepted = (socket) => socket.send("x".repeat(101));
    const socket = socketTo(fleetOf([a.url]), { ...QUIET, maxPayloadBytes: 100 });
    const events = eventsOf(socket);
    await until("the end", () => socket.state === "closed");
    await until("the goodbye at the peer", () => a.closes.length === 1);
    expect([a.closes[0]?.code, a.requests.length]).toEqual([1009, 1]);
    expect(events).toEqual(["open", "error", "close"]);
    await expect(socket.opened()).rejects.toMatchObject({ closeCode: 1009 });
  });

  it("is not given to a handler that was taken away", async () => {
    const a = await startNode();
    const socket = socketTo(fleetOf([a.url]), QUIET);
    const got: string[] = [];
    socket.onmessage = () => got.push("first");
    socket.onmessage = () => got.push("second");
    const listener = (): void => void got.push("third");
    socket.addEventListener("message", listener);
    socket.removeEventListener("message", listener);
    await socket.opened();
    a.sockets[0]?.send("x");
    await until("the message", () => got.length > 0);
    socket.onmessage = null;
    expect(socket.onmessage).toBeNull();
    a.sockets[0]?.send("y");
    a.sockets[0]?.ping();
    await new Promise((resolve) => a.sockets[0]?.once("pong", resolve));
    expect(got).toEqual(["second"]);
  });
});
