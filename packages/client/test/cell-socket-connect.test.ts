/** How a socket gets its first connection, over real servers: spec rows W01 to W09, W38, W39. */
import { describe, expect, it } from "vitest";
import { CellSocket } from "../src/cell-socket.ts";
import type { CellSocketOptions, SocketTarget } from "../src/cell-socket-options.ts";
import { SocketFatalError } from "../src/errors.ts";
import { closedPort } from "./support/closed-port.ts";
import { holdTimers } from "./support/held-timers.ts";
import { answer, RawServer, REFUSAL, until } from "./support/socket-node.ts";
import { eventsOf, fleetOf, keep, socketTo, startNode } from "./support/socket-scope.ts";

describe("connecting", () => {
  it("asks for the path on the authority, with the caller's headers and subprotocols", async () => {
    const a = await startNode();
    const socket = socketTo(fleetOf([a.url]), {
      headers: { authorization: "Bearer 1" },
      protocols: ["chat"],
    });
    await socket.opened();
    expect(a.requests[0]?.url).toBe("/room?x=1");
    expect(a.requests[0]?.headers).toMatchObject({
      host: "app.internal",
      authorization: "Bearer 1",
      "sec-websocket-protocol": "chat",
    });
    expect([socket.protocol, socket.node, socket.state, socket.readyState]).toEqual([
      "chat",
      a.id,
      "open",
      1,
    ]);
  });

  it("goes to B at once when A drains, without an event (W01)", async () => {
    const [a, b] = [await startNode(), await startNode()];
    // Whatever could be waited for here would outlast the test.
    a.react = () => REFUSAL.replace("retry-after: 1", "retry-after: 600");
    const hour = 3_600_000;
    const fleet = fleetOf([a.url, b.url], { internals: { random: () => 0.5 } });
    const socket = socketTo(fleet, { reconnect: { baseMs: hour, maxMs: hour, spreadMs: hour } });
    const events = eventsOf(socket);
    await socket.opened();
    expect(socket.node).toBe(b.id);
    expect(events).toEqual(["open"]);
    expect(fleet.nodes.find(({ id }) => id === a.id)?.state).toBe("draining");
  });

  it("backs off when all refuse, and opens later (W02)", async () => {
    const [a, b] = [await startNode(), await startNode()];
    a.react = () => REFUSAL;
    b.react = () => answer(503, "Worker refused: node is shedding load");
    const socket = socketTo(fleetOf([a.url, b.url]));
    const events = eventsOf(socket);
    await until("a round", () => b.requests.length >= 2);
    b.react = () => "accept";
    await socket.opened();
    expect(events.at(-1)).toBe("open");
    expect(events).toContain("reconnecting");
    expect(events).not.toContain("close");
  });

  it("comes back to a draining node when it is the only one, not before its Retry-After", async () => {
    const a = await startNode();
    a.react = (n) => (n === 1 ? REFUSAL : "accept");
    const socket = socketTo(fleetOf([a.url]), { reconnect: { baseMs: 20, maxMs: 50 } });
    await socket.opened();
    // The probe that finds it back comes up to a tenth before.
    expect((a.timesMs[1] ?? Number.NaN) - (a.timesMs[0] ?? Number.NaN)).toBeGreaterThan(890);
  });

  it("is fatal with 401 and static headers, with status and body (W03)", async () => {
    const a = await startNode();
    a.react = () => answer(401, "who are you?");
    const socket = socketTo(fleetOf([a.url]));
    const events = eventsOf(socket);
    const error = await socket.opened().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SocketFatalError);
    expect(error).toMatchObject({ code: "CELLKIT_CLIENT_WS_FATAL", status: 401, body: "who are you?" });
    await until("the close event", () => events.includes("close"));
    expect(events).toEqual(["error", "close"]);
    expect(a.requests).toHaveLength(1);
  });

  it("asks the headers function again after one 401 (W04)", async () => {
    const a = await startNode();
    a.react = (n) => (n === 1 ? answer(401) : "accept");
    let token = 0;
    const socket = socketTo(fleetOf([a.url]), { headers: async () => ({ token: String(++token) }) });
    await socket.opened();
    expect(a.requests.map(({ headers }) => headers["token"])).toEqual(["1", "2"]);
  });

  it.each([404, 426, 302])("is fatal with %i (W05)", async (status) => {
    const a = await startNode();
    a.react = () => answer(status, "no", { location: "http://elsewhere.example/" });
    await expect(socketTo(fleetOf([a.url])).opened()).rejects.toMatchObject({ status, body: "no" });
  });

  it.each([500, 502, 504])("backs off with %i, and prefers the other node (W06)", async (status) => {
    const [a, b] = [await startNode(), await startNode()];
    a.react = () => answer(status);
    const socket = socketTo(fleetOf([a.url, b.url]));
    const events = eventsOf(socket);
    await socket.opened();
    expect(socket.node).toBe(b.id);
    expect(events).toEqual(["reconnecting", "open"]);
  });

  it("respects the Retry-After of a 429 (W07)", async () => {
    const a = await startNode();
    a.react = (n) => (n === 1 ? answer(429, "", { "retry-after": "1" }) : "accept");
    const socket = socketTo(fleetOf([a.url]));
    await socket.opened();
    expect((a.timesMs[1] ?? Number.NaN) - (a.timesMs[0] ?? Number.NaN)).toBeGreaterThanOrEqual(990);
  });

  it("goes to B in the same round when A refuses the connection (W08)", async () => {
    const b = await startNode();
    const dead = keep(await closedPort());
    const socket = socketTo(fleetOf([dead.url, b.url]));
    const events = eventsOf(socket);
    await socket.opened();
    expect(events).toEqual(["open"]);
  });

  it("goes to B after the handshake timeout when A never answers (W09)", async () => {
    const silent = keep(await RawServer.start());
    const b = await startNode();
    const socket = socketTo(fleetOf([silent.url, b.url]), { handshakeTimeoutMs: 80 });
    await socket.opened();
    expect(socket.node).toBe(b.id);
    await until("the first connection to be closed", () => silent.abandoned);
  });

  it("is not held up by a node that drips an endless refusal", async () => {
    const dripping = keep(
      await RawServer.start((socket) => {
        socket.write("HTTP/1.1 503 X\r\ntransfer-encoding: chunked\r\n\r\n");
        const timer = setInterval(() => socket.write("1\r\nx\r\n"), 20);
        socket.on("close", () => clearInterval(timer));
      }),
    );
    const b = await startNode();
    const socket = socketTo(fleetOf([dripping.url, b.url]), { handshakeTimeoutMs: 150 });
    await socket.opened();
    expect(socket.node).toBe(b.id);
  });

  it("reads no more than 4 KiB of a refusal, and leaves no connection behind", async () => {
    const a = await startNode();
    a.react = () => answer(400, "x".repeat(100_000));
    const error = await socketTo(fleetOf([a.url]))
      .opened()
      .catch((reason: unknown) => reason);
    expect((error as SocketFatalError).body).toHaveLength(4_096);
  });

  it.each([
    [
      "a bad accept key",
      "HTTP/1.1 101 X\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: AAAA\r\n\r\n",
    ],
    ["no upgrade header", "HTTP/1.1 101 X\r\nupgrade: other\r\nconnection: upgrade\r\n\r\n"],
  ])("is fatal with a 101 that is none: %s", async (_, bytes) => {
    const a = await startNode();
    a.react = () => bytes;
    await expect(socketTo(fleetOf([a.url])).opened()).rejects.toMatchObject({
      code: "CELLKIT_CLIENT_WS_FATAL",
    });
    expect(a.requests).toHaveLength(1);
  });

  it("is fatal when the server chooses none of the subprotocols", async () => {
    const a = await startNode();
    a.react = (_, request) => {
      request.headers["sec-websocket-protocol"] = undefined;
      return "accept";
    };
    await expect(socketTo(fleetOf([a.url]), { protocols: ["chat"] }).opened()).rejects.toMatchObject({
      message: expect.stringContaining("subprotocol"),
    });
  });

  it("backs off when the target function fails, and is fatal when it leads elsewhere", async () => {
    const a = await startNode();
    let calls = 0;
    const target = (): string => {
      calls += 1;
      if (calls === 1) throw new TypeError("not yet");
      return `/room-${calls}`;
    };
    const socket = socketTo(fleetOf([a.url]), {}, target);
    await socket.opened();
    expect(a.requests[0]?.url).toBe("/room-2");
    await expect(
      socketTo(fleetOf([a.url]), {}, () => "http://other.example/").opened(),
    ).rejects.toMatchObject({
      code: "CELLKIT_CLIENT_CONFIG",
    });
  });

  it("lets classifyUpgrade decide", async () => {
    const a = await startNode();
    a.react = (n) => (n === 1 ? answer(404, "soon", { "x-why": "starting" }) : "accept");
    const seen: unknown[] = [];
    const socket = socketTo(fleetOf([a.url]), {
      classifyUpgrade: (status, headers, body) => {
        seen.push([status, headers.get("x-why"), body]);
        return "backoff";
      },
    });
    await socket.opened();
    expect(seen).toEqual([[404, "starting", "soon"]]);
  });

  it("is fatal when classifyUpgrade fails", async () => {
    const a = await startNode();
    a.react = () => answer(500);
    const cause = new RangeError("bug");
    const socket = socketTo(fleetOf([a.url]), {
      classifyUpgrade: () => {
        throw cause;
      },
    });
    await expect(socket.opened()).rejects.toMatchObject({
      code: "CELLKIT_CLIENT_WS_FATAL",
      status: 500,
      cause,
    });
  });

  it("gives up after maxAttempts, and without reconnect after one round", async () => {
    const dead = keep(await closedPort());
    await expect(
      socketTo(fleetOf([dead.url]), { reconnect: { maxAttempts: 2, baseMs: 1 } }).opened(),
    ).rejects.toMatchObject({
      message: expect.stringContaining("gave up after 2 dials"),
    });
    await expect(socketTo(fleetOf([dead.url]), { reconnect: false }).opened()).rejects.toMatchObject({
      code: "CELLKIT_CLIENT_WS_FATAL",
      message: expect.stringContaining("ECONNREFUSED"),
      cause: { cause: { code: "ECONNREFUSED" } },
    });
  });
});

describe("bad options", () => {
  it.each<[string, CellSocketOptions, SocketTarget]>([
    ["a target on another host", {}, "ws://other.example/room"],
    ["a target that is no URL", {}, "http://[/"],
    ["a negative time", { handshakeTimeoutMs: -1 }, "/"],
    ["a time beyond what a timer can do", { keepalive: { intervalMs: 1e12 } }, "/"],
    ["equal keepalive texts", { keepalive: { request: "x", response: "x" } }, "/"],
    ["a keepalive text above 2,048 bytes", { keepalive: { request: "€".repeat(683) } }, "/"],
    ["a low water mark above the high one", { lowWaterMarkBytes: 2, highWaterMarkBytes: 1 }, "/"],
    ["a subprotocol with a space", { protocols: ["a b"] }, "/"],
    ["a subprotocol twice", { protocols: ["a", "a"] }, "/"],
    ["not a number", { queue: { maxMessages: Number.NaN } }, "/"],
  ])("are refused at construction: %s", (_, options, target) => {
    const fleet = fleetOf(["http://127.0.0.1:1"]);
    expect(() => new CellSocket(fleet, target, options)).toThrow(
      expect.objectContaining({ code: "CELLKIT_CLIENT_CONFIG" }),
    );
  });

  it("a target URL on the authority is a path", async () => {
    const a = await startNode();
    await socketTo(fleetOf([a.url]), {}, "ws://app.internal/room/7?y#").opened();
    expect(a.requests[0]?.url).toBe("/room/7?y");
  });
});

describe("closing before it is open", () => {
  it("while connecting gives one close event and no unhandled error (W38)", async () => {
    const silent = keep(await RawServer.start());
    const socket = socketTo(fleetOf([silent.url]));
    const events = eventsOf(socket);
    await until("the dial", () => silent.connections.length === 1);
    const waiting = socket.opened().catch((reason: unknown) => reason);
    const event = await socket.close();
    expect(event).toMatchObject({ code: 1000, wasClean: true });
    expect(await waiting).toMatchObject({ name: "InvalidStateError" });
    await until("the dial to be cut", () => silent.abandoned);
    expect(events).toEqual(["close"]);
  });

  it("during backoff dials no more (W39)", async () => {
    const a = await startNode();
    a.react = () => answer(500);
    const delayMs = 31_003;
    const pauses = holdTimers(delayMs / 2);
    const fleet = fleetOf([a.url], { internals: { random: () => 0.5 } });
    const socket = socketTo(fleet, { reconnect: { baseMs: delayMs, maxMs: delayMs } });
    await until("backoff", () => pauses.length === 1);
    await socket.close();
    pauses[0]?.();
    await expect(socket.opened()).rejects.toMatchObject({ name: "InvalidStateError" });
    // Another socket's whole dial is enough time for one that should not be.
    a.react = () => "accept";
    await socketTo(fleetOf([a.url]), {}, "/other").opened();
    expect([socket.state, a.requests.map(({ url }) => url)]).toEqual(["closed", ["/room?x=1", "/other"]]);
  });

  it("in the same tick as the constructor dials not at all", async () => {
    const a = await startNode();
    const socket = socketTo(fleetOf([a.url]));
    await socket.close();
    expect(a.requests).toHaveLength(0);
  });

  it("by a signal that had aborted rejects with its reason and dials not at all", async () => {
    const a = await startNode();
    const reason = new RangeError("enough");
    const socket = socketTo(fleetOf([a.url]), { signal: AbortSignal.abort(reason) });
    await expect(socket.opened()).rejects.toBe(reason);
    expect(a.requests).toHaveLength(0);
  });

  it("ends when the fleet is closed", async () => {
    const a = await startNode();
    a.react = () => answer(500);
    const fleet = fleetOf([a.url]);
    const socket = socketTo(fleet);
    await until("backoff", () => a.requests.length > 0);
    await fleet.close();
    await expect(socket.opened()).rejects.toMatchObject({
      message: expect.stringContaining("fleet is closed"),
    });
  });
});
