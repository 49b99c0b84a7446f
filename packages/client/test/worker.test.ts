import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { answerKeepalive, isKeepalive, registerAutoResponse, staleSockets } from "../src/worker.ts";

class Pair {
  readonly request: string;
  readonly response: string;
  constructor(request: string, response: string) {
    this.request = request;
    this.response = response;
  }
}

/** A cell's state with the runtime's own behaviour: one pair, null before the first. */
function cell() {
  let pair: Pair | null = null;
  const set = vi.fn((next: { request: string; response: string }) => {
    pair = new Pair(next.request, next.response);
  });
  return { set, state: { getWebSocketAutoResponse: () => pair, setWebSocketAutoResponse: set } };
}

beforeEach(() => {
  vi.stubGlobal("WebSocketRequestResponsePair", Pair);
});
afterEach(() => {
  vi.unstubAllGlobals();
});

describe("registerAutoResponse", () => {
  it("registers ping and pong with the runtime's own class", () => {
    const { set, state } = cell();
    registerAutoResponse(state);
    expect(set).toHaveBeenCalledExactlyOnceWith(new Pair("ping", "pong"));
    expect(set.mock.calls[0]?.[0]).toBeInstanceOf(Pair);
  });

  it("does nothing for the pair that is there, and replaces another (K02)", () => {
    const { set, state } = cell();
    registerAutoResponse(state);
    registerAutoResponse(state, { request: "ping", response: "pong" });
    expect(set).toHaveBeenCalledTimes(1);
    registerAutoResponse(state, { response: "PONG" });
    expect(set).toHaveBeenCalledTimes(2);
  });

  it.each([
    ["2,049 bytes", "x".repeat(2_049)],
    ["683 characters of three bytes", "€".repeat(683)],
  ])("refuses %s on either side (K01)", (_, text) => {
    const { set, state } = cell();
    expect(() => registerAutoResponse(state, { request: text })).toThrow(RangeError);
    expect(() => registerAutoResponse(state, { response: text })).toThrow(RangeError);
    expect(set).not.toHaveBeenCalled();
  });

  it("accepts 2,048 bytes", () => {
    const { set, state } = cell();
    registerAutoResponse(state, { request: "x".repeat(2_048), response: `${"€".repeat(682)}xx` });
    expect(set).toHaveBeenCalledTimes(1);
  });

  it("refuses a request that equals its response", () => {
    expect(() => registerAutoResponse(cell().state, { request: "pong" })).toThrow(TypeError);
  });
});

describe("answerKeepalive", () => {
  it("answers a ping on a socket that cannot hibernate (K03)", () => {
    const socket = { send: vi.fn() };
    expect(answerKeepalive(socket, "ping")).toBe(true);
    expect(socket.send).toHaveBeenCalledExactlyOnceWith("pong");
    expect(answerKeepalive(socket, "?", { request: "?", response: "!" })).toBe(true);
    expect(socket.send).toHaveBeenLastCalledWith("!");
  });

  it.each([["ping "], ["PING"], [""], [new TextEncoder().encode("ping").buffer]])(
    "leaves %j alone",
    (message) => {
      const socket = { send: vi.fn() };
      expect(isKeepalive(message)).toBe(false);
      expect(answerKeepalive(socket, message)).toBe(false);
      expect(socket.send).not.toHaveBeenCalled();
    },
  );
});

describe("staleSockets", () => {
  const seen = new Map([
    ["fresh", new Date(9_000)],
    ["old", new Date(1_000)],
    ["at the limit", new Date(5_000)],
  ]);
  const state = {
    getWebSockets: () => ["fresh", "old", "at the limit", "silent"],
    getWebSocketAutoResponseTimestamp: (socket: string) => seen.get(socket) ?? null,
  };

  it("gives those whose last ping is too long ago, and nobody else (K04)", () => {
    expect(staleSockets(state, { olderThanMs: 5_000, now: 10_000 })).toEqual(["old"]);
  });

  it("judges a socket that never pinged by its acceptance, when that is known (K04)", () => {
    const acceptedAtMs = (socket: string): number | undefined => (socket === "silent" ? 4_000 : undefined);
    expect(staleSockets(state, { olderThanMs: 5_000, now: 10_000, acceptedAtMs })).toEqual(["old", "silent"]);
    expect(staleSockets(state, { olderThanMs: 7_000, now: 10_000, acceptedAtMs })).toEqual(["old"]);
  });

  it("takes the clock's time by default", () => {
    expect(staleSockets(state, { olderThanMs: 5_000 })).toEqual(["fresh", "old", "at the limit"]);
  });
});
