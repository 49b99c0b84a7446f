/** What a socket does when its connection is lost or its node leaves: spec rows W10 to W17, W25, W40, W41, W47. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import type { CellSocket } from "../src/cell-socket.ts";
import type { CellReconnectingEvent } from "../src/cell-socket-events.ts";
import type { CellSocketOptions } from "../src/cell-socket-options.ts";
import { SocketFatalError } from "../src/errors.ts";
import { answer, REFUSAL, type SocketNodeServer, until } from "./support/socket-node.ts";
import { eventsOf, fleetOf, keep, socketTo, startNode } from "./support/socket-scope.ts";

/** Every connection counts as one that had worked. */
const WORKED: CellSocketOptions = { reconnect: { minUptimeMs: 0 } };

/** Waits until the node has this many open sockets, and gives the newest. */
async function newest(node: SocketNodeServer, count = 1) {
  await until(`${count} sockets at ${node.id}`, () => node.sockets.length === count);
  const socket = node.sockets.at(-1);
  if (socket === undefined) throw new TypeError("no socket");
  return socket;
}

describe("a close by the peer", () => {
  it("with 1000 is the end (W10)", async () => {
    const a = await startNode();
    const socket = socketTo(fleetOf([a.url]));
    const events = eventsOf(socket);
    await socket.opened();
    (await newest(a)).close(1000, "done");
    await until("the end", () => socket.state === "closed");
    expect(events).toEqual(["open", "close"]);
    expect(await socket.close()).toMatchObject({ code: 1000, reason: "done", wasClean: true, node: a.id });
  });

  it("with 1000 is a loss with reconnectOnNormal (W10)", async () => {
    const a = await startNode();
    const socket = socketTo(fleetOf([a.url]), { ...WORKED, reconnectOnNormal: true });
    const events = eventsOf(socket);
    await socket.opened();
    (await newest(a)).close(1000);
    await until("another connection", () => a.requests.length === 2 && socket.state === "open");
    expect(events).toEqual(["open", "reconnecting", "open"]);
  });

  it.each([
    [1001, "bye"],
    [1012, "node draining"],
    [1012, "restart"],
  ])("with %i %s leads to the other node (W11)", async (code, reason) => {
    const [a, b] = [await startNode(), await startNode()];
    const fleet = fleetOf([a.url, b.url]);
    const socket = socketTo(fleet);
    const seen: unknown[] = [];
    socket.onreconnecting = ({ attempt, close, delayMs }: CellReconnectingEvent) =>
      seen.push([attempt, close?.code, close?.reason, delayMs]);
    await socket.opened();
    // Its health agrees, whenever a probe asks.
    a.health = reason === "node draining" ? 503 : 200;
    (await newest(a)).close(code, reason);
    await until("a connection to B", () => socket.node === b.id && socket.state === "open");
    expect(seen).toEqual([[1, code, reason, 0]]);
    const state = fleet.nodes.find(({ id }) => id === a.id)?.state;
    expect(state).toBe(reason === "node draining" ? "draining" : "admitted");
  });

  it("with 1012 owner unavailable may come back to the same node (W11)", async () => {
    const [a, b] = [await startNode(), await startNode()];
    const socket = socketTo(fleetOf([a.url, b.url]));
    await socket.opened();
    (await newest(a)).close(1012, "owner unavailable");
    await until("a second connection", () => a.requests.length === 2 && socket.state === "open");
    expect(b.requests).toHaveLength(0);
  });

  it("waits up to the spread before the first dial (W11)", async () => {
    const a = await startNode();
    const fleet = fleetOf([a.url], { internals: { random: () => 0.5 } });
    const socket = socketTo(fleet, { reconnect: { spreadMs: 300 } });
    await socket.opened();
    const cutMs = performance.now();
    (await newest(a)).close(1001);
    await until("a second connection", () => a.requests.length === 2);
    expect((a.timesMs[1] ?? 0) - cutMs).toBeGreaterThanOrEqual(145);
  });

  it("with 1011 backs off (W13)", async () => {
    const a = await startNode();
    const delays: number[] = [];
    const socket = socketTo(fleetOf([a.url], { internals: { random: () => 0.5 } }), {
      reconnect: { baseMs: 40 },
    });
    socket.onreconnecting = ({ delayMs }) => delays.push(delayMs);
    await socket.opened();
    (await newest(a)).close(1011, "durability unproven");
    await until("a second connection", () => a.requests.length === 2 && socket.state === "open");
    expect(delays).toEqual([20]);
  });

  it.each([1008, 4401, 4403])("with %i is fatal (W14)", async (code) => {
    const a = await startNode();
    const socket = socketTo(fleetOf([a.url]));
    const events = eventsOf(socket);
    await socket.opened();
    (await newest(a)).close(code, "no");
    const event = await new Promise<{ error: unknown; code: number }>((resolve) => {
      socket.onclose = resolve;
    });
    expect(event.error).toBeInstanceOf(SocketFatalError);
    expect(event.error).toMatchObject({ closeCode: code, message: expect.stringContaining("no") });
    expect([event.code, events]).toEqual([code, ["open", "error", "close"]]);
    expect(() => socket.send("late")).toThrow(expect.objectContaining({ name: "InvalidStateError" }));
  });

  it.each([4408, 4429, 1013])("with %i backs off (W15)", async (code) => {
    const a = await startNode();
    const socket = socketTo(fleetOf([a.url]), WORKED);
    await socket.opened();
    (await newest(a)).close(code);
    await until("a second connection", () => a.requests.length === 2 && socket.state === "open");
  });

  it("is what classifyClose says", async () => {
    const a = await startNode();
    const seen: unknown[] = [];
    const socket = socketTo(fleetOf([a.url]), {
      classifyClose: ({ code, node, reason }) => {
        seen.push([code, reason, node]);
        return code === 4000 ? "never" : "at-once";
      },
    });
    await socket.opened();
    (await newest(a)).close(1008, "again");
    await until("a second connection", () => a.requests.length === 2 && socket.state === "open");
    (await newest(a)).close(4000, "enough");
    await until("the end", () => socket.state === "closed");
    expect(seen).toEqual([
      [1008, "again", a.id],
      [4000, "enough", a.id],
    ]);
  });
});

describe("classifyClose that fails", () => {
  it("is fatal, with what it threw as the cause", async () => {
    const a = await startNode();
    const cause = new RangeError("bug");
    const socket = socketTo(fleetOf([a.url]), {
      classifyClose: () => {
        throw cause;
      },
    });
    await socket.opened();
    (await newest(a)).close(1012);
    await until("the end", () => socket.state === "closed");
    await expect(socket.opened()).rejects.toMatchObject({
      code: "CELLKIT_CLIENT_WS_FATAL",
      closeCode: 1012,
      cause,
    });
  });
});

describe("a connection that breaks", () => {
  it("is replaced at once when it had worked, on another node (W12)", async () => {
    const [a, b] = [await startNode(), await startNode()];
    const socket = socketTo(fleetOf([a.url, b.url]), WORKED);
    await socket.opened();
    a.cut();
    await until("a connection to B", () => socket.node === b.id && socket.state === "open");
  });

  it("meets backoff when it was young (W12), and growing delays when that goes on (W17)", async () => {
    const a = await startNode();
    a.accepted = (socket) => socket.terminate();
    const delays: number[] = [];
    const socket = socketTo(fleetOf([a.url], { internals: { random: () => 0.999 } }), {
      reconnect: { baseMs: 4, maxMs: 100 },
    });
    socket.onreconnecting = ({ close, delayMs }) => {
      if (close !== undefined) delays.push(Math.round(delayMs));
    };
    await until("seven losses", () => delays.length >= 7);
    expect(delays.slice(0, 7)).toEqual([4, 8, 16, 32, 64, 100, 100]);
  });

  it("spreads a crowd that lost its node (W16)", async () => {
    const count = inject("size") === "long" ? 2_000 : 200;
    const [a, b] = [await startNode(), await startNode()];
    const fleet = fleetOf([a.url, b.url], { internals: { random: Math.random } });
    const sockets: CellSocket[] = [];
    // In portions, since thousands of connects in one tick overflow the listener's backlog.
    while (sockets.length < count) {
      const options = { ...WORKED, keepalive: false, handshakeTimeoutMs: 60_000 } as const;
      const portion = Array.from({ length: 100 }, () => socketTo(fleet, options));
      await Promise.all(portion.map((socket) => socket.opened()));
      sockets.push(...portion);
    }
    expect(a.sockets).toHaveLength(count);
    const buckets = new Map<number, number>();
    let longestMs = 0;
    for (const socket of sockets) {
      socket.onreconnecting = ({ delayMs }) => {
        const bucket = Math.floor(delayMs / 100);
        buckets.set(bucket, (buckets.get(bucket) ?? 0) + 1);
        longestMs = Math.max(longestMs, delayMs);
      };
    }
    const killedMs = performance.now();
    await a.kill();
    await until("everybody at B", () => b.sockets.length === count, 60_000);
    // What was planned: when a dial that is due really goes out depends on this machine, but none goes out before. A tenth
    // of them is in each bucket on average; these bounds are missed less than once in 10^10 runs.
    expect(Math.max(...buckets.values()) / count).toBeLessThan(inject("size") === "long" ? 0.15 : 0.3);
    expect(longestMs).toBeGreaterThan(500);
    expect(Math.max(...b.timesMs) - killedMs).toBeGreaterThan(longestMs - 5);
    expect(b.requests).toHaveLength(count);
  }, 120_000);

  it("stays lost with reconnect: false, and the error says how", async () => {
    const a = await startNode();
    const socket = socketTo(fleetOf([a.url]), { reconnect: false });
    await socket.opened();
    a.cut();
    await until("the end", () => socket.state === "closed");
    await expect(socket.opened()).rejects.toMatchObject({ code: "CELLKIT_CLIENT_WS_FATAL", closeCode: 1006 });
  });
});

describe("a node that leaves", () => {
  it("is left when its health says so, without a close event (W25)", async () => {
    const [a, b] = [await startNode(), await startNode()];
    const fleet = fleetOf([a.url, b.url], { health: { intervalMs: 30 } });
    const socket = socketTo(fleet);
    const events = eventsOf(socket);
    await socket.opened();
    a.health = 503;
    await until("a connection to B", () => socket.node === b.id && socket.state === "open");
    await until("the goodbye at A", () => a.closes.length === 1);
    expect(a.closes).toEqual([{ code: 1001, reason: "migrating" }]);
    expect(events).toEqual(["open", "open"]);
  });

  it("is left when an HTTP call or another socket met its drain refusal, and what is sent meanwhile arrives", async () => {
    const [a, b] = [await startNode(), await startNode()];
    const fleet = fleetOf([a.url, b.url]);
    const socket = socketTo(fleet);
    await socket.opened();
    const migrations: unknown[] = [];
    const onMigrate = (message: unknown): void => {
      migrations.push(message);
      expect(socket.state).toBe("migrating");
      expect(socket.send("meanwhile")).toBe("queued");
    };
    subscribe("fleet:ws:migrate", onMigrate);
    onTestFinished(() => void unsubscribe("fleet:ws:migrate", onMigrate));
    a.react = () => REFUSAL;
    await socketTo(fleet).opened();
    await until("the message at B", () => b.received.includes("meanwhile"));
    expect(migrations).toEqual([{ node: a.id }]);
    expect(socket.node).toBe(b.id);
  });

  it("is not waited for when it does not say goodbye", async () => {
    const [a, b] = [await startNode(), await startNode()];
    const fleet = fleetOf([a.url, b.url]);
    const socket = socketTo(fleet, { closeTimeoutMs: 60_000 });
    await socket.opened();
    (await newest(a)).pause();
    a.react = () => REFUSAL;
    await socketTo(fleet).opened();
    await until("a connection to B", () => socket.node === b.id && socket.state === "open");
  });

  it("is not left when there is no other node", async () => {
    const a = await startNode();
    const fleet = fleetOf([a.url], { health: { intervalMs: 20 } });
    const socket = socketTo(fleet);
    await socket.opened();
    a.health = 503;
    await until("the node to be unhealthy", () => fleet.nodes[0]?.state === "unhealthy");
    a.health = 200;
    await until("the node to be admitted", () => fleet.nodes[0]?.state === "admitted");
    expect([a.closes, a.requests.length, socket.state]).toEqual([[], 1, "open"]);
  });

  it("is not left with migrate: false", async () => {
    const [a, b] = [await startNode(), await startNode()];
    const fleet = fleetOf([a.url, b.url]);
    const socket = socketTo(fleet, { migrate: false });
    await socket.opened();
    a.health = 503;
    a.react = () => REFUSAL;
    await socketTo(fleet).opened();
    expect(fleet.nodes[0]?.state).toBe("draining");
    expect(socket.node).toBe(a.id);
  });
});

describe("reconnect()", () => {
  it("ten times in a tick leaves one live socket (W40), and late events of the old one are ignored (W41)", async () => {
    const [a, b] = [await startNode(), await startNode()];
    const socket = socketTo(fleetOf([a.url, b.url]));
    const events = eventsOf(socket);
    await socket.opened();
    for (let n = 0; n < 10; n += 1) socket.reconnect("again");
    await until("a connection to B", () => socket.node === b.id && socket.state === "open");
    await until("the old one to be gone", () => a.sockets.length === 0 && a.closes.length === 1);
    expect(a.closes).toEqual([{ code: 1001, reason: "again" }]);
    expect([a.requests.length, b.requests.length, b.sockets.length]).toEqual([1, 1, 1]);
    expect(events).toEqual(["open", "reconnecting", "open"]);
  });

  it("ends a wait", async () => {
    const a = await startNode();
    a.react = (n) => (n === 1 ? answer(500) : "accept");
    const socket = socketTo(fleetOf([a.url], { internals: { random: () => 0.5 } }), {
      reconnect: { baseMs: 100_000, maxMs: 100_000 },
    });
    const events = eventsOf(socket);
    await until("backoff", () => events.includes("reconnecting"));
    socket.reconnect();
    await socket.opened();
    expect(a.requests).toHaveLength(2);
  });

  it("after the end does nothing", async () => {
    const a = await startNode();
    const socket = socketTo(fleetOf([a.url]));
    await socket.opened();
    await socket.close();
    socket.reconnect();
    expect([socket.state, a.requests.length]).toEqual(["closed", 1]);
  });
});

describe("a listener that throws", () => {
  it("is reported as uncaught, and neither other listeners nor reconnecting suffer (W47)", async () => {
    const a = await startNode();
    const uncaught: unknown[] = [];
    const before = process.rawListeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    process.on("uncaughtException", (error) => uncaught.push(error));
    onTestFinished(() => {
      process.removeAllListeners("uncaughtException");
      for (const listener of before) process.on("uncaughtException", listener as (error: Error) => void);
    });
    const socket = keep(socketTo(fleetOf([a.url]), WORKED));
    const boom = new RangeError("boom");
    let opens = 0;
    socket.addEventListener("open", () => {
      throw boom;
    });
    socket.onopen = () => {
      opens += 1;
    };
    socket.onreconnecting = () => {
      throw boom;
    };
    await socket.opened();
    a.cut();
    await until("a second connection", () => opens === 2);
    await until("three reports", () => uncaught.length === 3);
    expect(uncaught).toEqual([boom, boom, boom]);
  });
});
