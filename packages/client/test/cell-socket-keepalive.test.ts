/** Keepalive over real sockets: spec rows W18 to W24. What depends on time alone is in core/socket-keepalive.test.ts. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { describe, expect, it, onTestFinished } from "vitest";
import type { WebSocket } from "ws";
import type { CellSocketOptions } from "../src/cell-socket-options.ts";
import { FreezingRelay, type SocketNodeServer, until } from "./support/socket-node.ts";
import { eventsOf, fleetOf, keep, socketTo, startNode } from "./support/socket-scope.ts";

const SHORT: CellSocketOptions = {
  keepalive: { intervalMs: 40, timeoutMs: 20_000 },
  reconnect: { minUptimeMs: 0 },
};

/** Answers pings as a runtime with the pair registered does. */
function answerPings(socket: WebSocket): void {
  socket.on("message", (data, isBinary) => {
    if (!isBinary && data.toString() === "ping") socket.send("pong");
  });
}

async function pongingNode(options: { autoPong?: boolean } = {}): Promise<SocketNodeServer> {
  const node = await startNode(options);
  node.accepted = answerPings;
  return node;
}

function messagesOf(socket: {
  addEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
}): unknown[] {
  const messages: unknown[] = [];
  socket.addEventListener("message", ({ data }) => messages.push(data));
  return messages;
}

/** What is published on a channel during the test. */
function published(name: string): unknown[] {
  const messages: unknown[] = [];
  const listener = (message: unknown): void => void messages.push(message);
  subscribe(name, listener);
  onTestFinished(() => void unsubscribe(name, listener));
  return messages;
}

describe("an idle connection", () => {
  it("is pinged by text, the answer is not delivered, and the round trip is known (W18)", async () => {
    const a = await pongingNode();
    const pings = published("fleet:ws:ping");
    const socket = socketTo(fleetOf([a.url]), SHORT);
    const messages = messagesOf(socket);
    await socket.opened();
    await until("three pings", () => a.received.length >= 3);
    expect(new Set(a.received)).toEqual(new Set(["ping"]));
    expect(messages).toEqual([]);
    expect(socket.rttMs).toBeGreaterThan(0);
    expect(pings).toContainEqual({ node: a.id, rttMs: expect.any(Number) });
    expect([a.requests.length, socket.state]).toEqual([1, "open"]);
  });

  it("delivers the answer's text when no ping is under way (W20)", async () => {
    const a = await startNode();
    a.accepted = (socket) => socket.send("pong");
    const socket = socketTo(fleetOf([a.url]));
    const messages = messagesOf(socket);
    await until("the message", () => messages.length > 0);
    expect(messages).toEqual(["pong"]);
  });

  it("sends other texts when told so, and protocol pings alone in that mode", async () => {
    const a = await startNode();
    a.accepted = (socket) => socket.on("message", () => socket.send("?"));
    socketTo(fleetOf([a.url]), {
      keepalive: { intervalMs: 40, timeoutMs: 20_000, request: "!", response: "?" },
    });
    await until("a ping", () => a.received.length > 0);
    expect(a.received[0]).toBe("!");
    const b = await startNode();
    let pings = 0;
    b.accepted = (socket) => socket.on("ping", () => (pings += 1));
    socketTo(fleetOf([b.url]), { keepalive: { mode: "protocol", intervalMs: 40, timeoutMs: 60_000 } });
    await until("two protocol pings", () => pings >= 2);
    expect(b.received).toEqual([]);
  });
});

describe("a peer that froze", () => {
  it("is cut within interval and timeout, and replaced (W21)", async () => {
    const [a, b] = [await pongingNode(), await pongingNode()];
    const relay = keep(await FreezingRelay.start(a.port));
    const closes = published("fleet:ws:close");
    const socket = socketTo(fleetOf([relay.url, b.url]), {
      ...SHORT,
      keepalive: { intervalMs: 50, timeoutMs: 150 },
    });
    await socket.opened();
    await until("an answered ping", () => socket.rttMs !== undefined);
    relay.freeze();
    // Nothing else would ever end it.
    await until("a connection to B", () => socket.node === b.id && socket.state === "open");
    expect(closes[0]).toMatchObject({ code: 1006, reason: "keepalive timeout" });
  });
});

describe("a cell that did not register the pair", () => {
  it("keeps its connection by protocol pings, and the warning comes once (W22)", async () => {
    const a = await startNode();
    let protocolPings = 0;
    a.accepted = (socket) => socket.on("ping", () => (protocolPings += 1));
    const pings = published("fleet:ws:ping");
    // A protocol ping has a second to be answered, which a busy machine may need.
    const socket = socketTo(fleetOf([a.url]), { ...SHORT, keepalive: { intervalMs: 10, timeoutMs: 1_000 } });
    const events = eventsOf(socket);
    await until("fallen back", () => protocolPings >= 4);
    expect(a.received).toEqual(["ping"]);
    expect(pings.filter((message) => "misconfigured" in (message as object))).toEqual([
      { node: a.id, misconfigured: true },
    ]);
    expect(events).toEqual(["open"]);
  });
});

describe("this process itself", () => {
  it("stalls for long without a false timeout (W23)", async () => {
    const a = await pongingNode();
    const socket = socketTo(fleetOf([a.url]), { keepalive: { intervalMs: 10, timeoutMs: 300 } });
    const events = eventsOf(socket);
    await until("an answered ping", () => socket.rttMs !== undefined);
    let stalls = 0;
    // The ping has been read and not answered: every deadline passes while the loop stands still.
    a.sockets[0]?.prependListener("message", () => {
      if (stalls < 3) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
      stalls += 1;
    });
    await until("three stalls and more pings", () => stalls >= 5);
    expect(events).toEqual(["open"]);
    expect(a.requests).toHaveLength(1);
  });

  it("stands still until just after a deadline without missing the answer that came before it", async () => {
    const a = await startNode();
    const still = new Int32Array(new SharedArrayBuffer(4));
    let pings = 0;
    a.accepted = (socket) => {
      socket.on("message", () => {
        socket.send("pong");
        pings += 1;
        if (pings === 1) Atomics.wait(still, 0, 0, 340);
      });
    };
    const socket = socketTo(fleetOf([a.url]), { keepalive: { intervalMs: 200, timeoutMs: 300 } });
    const events = eventsOf(socket);
    await until("more pings", () => pings >= 2);
    expect(events).toEqual(["open"]);
    expect(a.requests).toHaveLength(1);
  });

  it("pauses reading for long without a false timeout (W24)", async () => {
    const a = await pongingNode();
    const socket = socketTo(fleetOf([a.url]), { keepalive: { intervalMs: 10, timeoutMs: 300 } });
    const events = eventsOf(socket);
    const messages = messagesOf(socket);
    await until("an answered ping", () => socket.rttMs !== undefined);
    socket.pause();
    // More than this process reads ahead: not even the arrival of bytes shows life now.
    const filling = "x".repeat(10_000);
    for (let n = 0; n < 500; n += 1) a.sockets[0]?.send(filling);
    await until("the peer to be held up", () => (a.sockets[0]?.bufferedAmount ?? 0) > 0);
    const pausedMs = performance.now();
    await until("twice interval and timeout", () => performance.now() - pausedMs > 620);
    expect([messages, events]).toEqual([[], ["open"]]);
    socket.resume();
    await until("the messages", () => messages.length === 500);
    const pings = a.received.length;
    await until("pings again", () => a.received.length > pings);
    expect(events).toEqual(["open"]);
  });
});
