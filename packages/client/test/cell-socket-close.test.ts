/** How a socket ends when its user wants it to: spec rows W37, W45, W46. */
import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { CellSocket } from "../src/cell-socket.ts";
import type { CellSocketOptions } from "../src/cell-socket-options.ts";
import { until } from "./support/socket-node.ts";
import { eventsOf, fleetOf, socketTo, startNode } from "./support/socket-scope.ts";

const QUIET: CellSocketOptions = { keepalive: false };

describe("close()", () => {
  it("says goodbye with code and reason, and gives the same event each time", async () => {
    const a = await startNode();
    const socket = socketTo(fleetOf([a.url]), QUIET);
    const events = eventsOf(socket);
    await socket.opened();
    const closing = socket.close(4001, "bye");
    expect([socket.state, socket.readyState]).toEqual(["closing", 2]);
    expect(() => socket.send("late")).toThrow(expect.objectContaining({ name: "InvalidStateError" }));
    const event = await closing;
    expect(event).toMatchObject({ code: 4001, reason: "bye", wasClean: true, node: a.id, error: undefined });
    expect(await socket.close()).toBe(event);
    await until("the goodbye", () => a.closes.length === 1);
    expect(a.closes).toEqual([{ code: 4001, reason: "bye" }]);
    expect([events, socket.state, socket.readyState, socket.node]).toEqual([
      ["open", "close"],
      "closed",
      3,
      undefined,
    ]);
  });

  it("resolves in time against a frozen peer (W37)", async () => {
    const a = await startNode();
    a.accepted = (socket) => socket.pause();
    const socket = socketTo(fleetOf([a.url]), { ...QUIET, closeTimeoutMs: 100 });
    await socket.opened();
    const rival = new Promise((resolve) => setTimeout(resolve, 15_000, "15 seconds").unref());
    const event = await Promise.race([socket.close(), rival]);
    expect(event).toMatchObject({ code: 1006, wasClean: false, error: undefined });
  });

  it("resolves while the consumer has paused and much is unread", async () => {
    const a = await startNode();
    const socket = socketTo(fleetOf([a.url]), QUIET);
    socket.addEventListener("message", () => {});
    await socket.opened();
    socket.pause();
    for (let n = 0; n < 100; n += 1) a.sockets[0]?.send("x".repeat(10_000));
    expect(await socket.close()).toMatchObject({ code: 1000, wasClean: true });
  });

  it("sends what is queued first", async () => {
    const a = await startNode();
    const socket = socketTo(fleetOf([a.url]), {
      ...QUIET,
      highWaterMarkBytes: 1,
      lowWaterMarkBytes: 1,
    });
    await socket.opened();
    socket.send(Buffer.alloc(8_000_000));
    const results = Array.from({ length: 50 }, (_, n) => socket.send(String(n)));
    expect(new Set(results)).toEqual(new Set(["queued"]));
    await socket.close();
    await until("the goodbye", () => a.closes.length === 1);
    expect(a.received.slice(1)).toEqual(Array.from({ length: 50 }, (_, n) => String(n)));
  });

  it.each([
    [1001, "", "InvalidAccessError"],
    [2999, "", "InvalidAccessError"],
    [5000, "", "InvalidAccessError"],
    [1000, "€".repeat(42), "SyntaxError"],
  ])("refuses code %i with reason %j", async (code, reason, name) => {
    const socket = socketTo(fleetOf(["http://127.0.0.1:1"]), QUIET);
    await expect(socket.close(code, reason)).rejects.toMatchObject({ name });
    expect(socket.state).toBe("connecting");
  });

  it("is what await using does (W45)", async () => {
    const a = await startNode();
    const fleet = fleetOf([a.url]);
    {
      await using socket = new CellSocket(fleet, "/", { ...QUIET, closeTimeoutMs: 20_000 });
      await socket.opened();
    }
    await until("the goodbye", () => a.closes.length === 1);
    expect(a.closes.map(({ code }) => code)).toEqual([1000]);
  });
});

describe("a signal that aborts", () => {
  it("closes, and its reason is the error everywhere (W46)", async () => {
    const a = await startNode();
    const abort = new AbortController();
    const socket = socketTo(fleetOf([a.url]), { ...QUIET, signal: abort.signal });
    const errors: unknown[] = [];
    socket.onerror = ({ error }) => errors.push(error);
    const reading = socket[Symbol.asyncIterator]().next();
    await socket.opened();
    const reason = new RangeError("enough");
    abort.abort(reason);
    await expect(reading).rejects.toBe(reason);
    await expect(socket.opened()).rejects.toBe(reason);
    expect(errors).toEqual([reason]);
    expect(await socket.close()).toMatchObject({ error: reason });
    await until("the goodbye", () => a.closes.length === 1);
    expect(a.closes).toEqual([{ code: 1000, reason: "aborted" }]);
  });

  it("has no listener left after the end, nor has the signal of a wait", async () => {
    const a = await startNode();
    const { signal } = new AbortController();
    const socket = socketTo(fleetOf([a.url]), { ...QUIET, signal });
    await socket.opened(signal);
    await socket.ready(signal);
    await socket.close();
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  it("ends a wait for opened() alone", async () => {
    const socket = socketTo(fleetOf(["http://127.0.0.1:1"]), QUIET);
    const abort = new AbortController();
    const waiting = socket.opened(abort.signal);
    abort.abort(new RangeError("enough"));
    await expect(waiting).rejects.toBeInstanceOf(RangeError);
    expect(socket.state).toBe("connecting");
  });
});
