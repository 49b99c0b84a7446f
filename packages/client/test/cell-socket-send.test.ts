/** Sending: spec rows W27 to W30, W33, W34, W43, and the handshake of `onOpen`. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import type { CellSocket } from "../src/cell-socket.ts";
import type { CellSocketOptions, SendData } from "../src/cell-socket-options.ts";
import { holdTimers } from "./support/held-timers.ts";
import { answer, until } from "./support/socket-node.ts";
import { fleetOf, socketTo, startNode } from "./support/socket-scope.ts";

const QUIET: CellSocketOptions = { keepalive: false, reconnect: { minUptimeMs: 0 } };

function discarded(): unknown[] {
  const messages: unknown[] = [];
  const listener = (message: unknown): void => void messages.push(message);
  subscribe("fleet:ws:discard", listener);
  onTestFinished(() => void unsubscribe("fleet:ws:discard", listener));
  return messages;
}

/** A socket that cannot connect yet, and a way to let it. */
async function held(
  options: CellSocketOptions = {},
): Promise<{ socket: CellSocket; received: (string | Buffer)[]; release(): void }> {
  const a = await startNode();
  let open = false;
  a.react = () => (open ? "accept" : answer(500));
  const socket = socketTo(fleetOf([a.url]), { ...QUIET, reconnect: { baseMs: 5, maxMs: 5 }, ...options });
  await until("a failed dial", () => a.requests.length > 0);
  return {
    socket,
    received: a.received,
    release() {
      open = true;
    },
  };
}

describe("sending while there is no connection", () => {
  it("queues, and sends in order after what onOpen sends (W27)", async () => {
    const { received, release, socket } = await held({
      onOpen: async ({ attempt, node, resumed, send }) => {
        send(`hello ${resumed} ${attempt > 1} ${node.startsWith("127.0.0.1:")}`);
        await new Promise((resolve) => setImmediate(resolve));
        send("second");
      },
    });
    expect([socket.send("a"), socket.send("b")]).toEqual(["queued", "queued"]);
    expect(socket.bufferedAmount).toBe(2);
    socket.onopen = () => socket.send("c");
    release();
    await until("all five", () => received.length === 5);
    expect(received).toEqual(["hello false true true", "second", "a", "b", "c"]);
    expect(socket.bufferedAmount).toBe(0);
  });

  it("throws when the queue is full (W28)", async () => {
    const { socket } = await held({ queue: { maxMessages: 1 } });
    socket.send("a");
    expect(() => socket.send("b")).toThrow(expect.objectContaining({ code: "CELLKIT_CLIENT_WS_BUFFER" }));
  });

  it.each([
    ["drop-oldest", ["b", "c"], "a"],
    ["drop-newest", ["a", "b"], "c"],
  ] as const)("with %s drops and publishes (W28)", async (overflow, sent, lost) => {
    const gone = discarded();
    const { received, release, socket } = await held({ queue: { maxMessages: 2, overflow } });
    for (const data of ["a", "b", "c"]) socket.send(data);
    release();
    await until("both", () => received.length === 2);
    expect([received, gone]).toEqual([sent, [{ data: lost, reason: "overflow" }]]);
  });

  it("discards what waited too long, and publishes it (W29)", async () => {
    const gone = discarded();
    const { received, release, socket } = await held({ queue: { maxAgeMs: 30 } });
    socket.send("old");
    await until("the discard", () => gone.length === 1);
    expect([gone, socket.bufferedAmount]).toEqual([[{ data: "old", reason: "expired" }], 0]);
    // It may not wait for longer than the old one, so it is sent when it need not.
    release();
    await socket.opened();
    expect(socket.send("new")).toBe("sent");
    await until("the other", () => received.length === 1);
    expect(received).toEqual(["new"]);
  });

  it("throws with queue: false", async () => {
    const { socket } = await held();
    expect(() => socket.send("a", { queue: false })).toThrow(
      expect.objectContaining({ code: "CELLKIT_CLIENT_WS_BUFFER" }),
    );
  });

  it("keeps what the buffer held at that moment", async () => {
    const { received, release, socket } = await held();
    const buffer = Uint8Array.of(1, 2, 3);
    socket.send(buffer.subarray(1));
    buffer.fill(0);
    release();
    await until("the message", () => received.length === 1);
    expect(received[0]).toEqual(Buffer.from([2, 3]));
  });

  it("publishes what is lost by closing", async () => {
    const gone = discarded();
    const { socket } = await held();
    socket.send("a");
    await socket.close();
    expect(gone).toEqual([{ data: "a", reason: "closed" }]);
  });
});

describe("a message handed to a connection that dies", () => {
  it("is not sent again (W30)", async () => {
    const a = await startNode();
    a.accepted = (socket, n) => {
      if (n === 1) socket.pause();
    };
    const socket = socketTo(fleetOf([a.url]), QUIET);
    await socket.opened();
    expect(socket.send("once")).toBe("sent");
    a.cut();
    await until("a second connection", () => a.requests.length === 2 && socket.state === "open");
    socket.send("after");
    await until("the later message", () => a.received.includes("after"));
    expect(a.received.filter((data) => data === "once").length).toBeLessThanOrEqual(1);
    expect(a.received.at(-1)).toBe("after");
  });

  it("is queued instead when the peer has begun to close", async () => {
    const a = await startNode();
    const socket = socketTo(fleetOf([a.url]), { ...QUIET, closeTimeoutMs: 300 });
    await socket.opened();
    await until("the socket", () => a.sockets.length === 1);
    // A goodbye whose answer is never read: the connection hangs half closed until the time is up.
    a.sockets[0]?.pause();
    a.writeRaw(Uint8Array.of(0x88, 2, 1012 >> 8, 1012 & 255));
    await until("send() to queue", () => socket.send("late") === "queued");
    expect([socket.state, a.requests.length]).toEqual(["open", 1]);
    await until("the message", () => a.received.includes("late"));
  });
});

describe("sizes", () => {
  it("bufferedAmount counts UTF-8 bytes (W33)", async () => {
    const { socket } = await held();
    socket.send("€€");
    socket.send(new Uint16Array(3));
    socket.send(new ArrayBuffer(2));
    socket.send(new Blob(["ab"]));
    expect(socket.bufferedAmount).toBe(6 + 6 + 2 + 2);
  });

  it("refuses what is above maxSendBytes before sending, in bytes (W43)", async () => {
    const { socket } = await held({ maxSendBytes: 5 });
    expect(() => socket.send("€€")).toThrow(expect.objectContaining({ code: "CELLKIT_CLIENT_WS_TOO_LARGE" }));
    expect(socket.send("€ab")).toBe("queued");
  });

  it.each<[string, SendData, string | Buffer]>([
    ["text", "héllo", "héllo"],
    ["an ArrayBuffer", Uint8Array.of(1, 2).buffer, Buffer.from([1, 2])],
    ["a view of one", new DataView(Uint8Array.of(0, 1, 2, 0).buffer, 1, 2), Buffer.from([1, 2])],
    ["a Blob", new Blob([Uint8Array.of(1, 2)]), Buffer.from([1, 2])],
  ])("sends %s (W44)", async (_, data, expected) => {
    const a = await startNode();
    const socket = socketTo(fleetOf([a.url]), QUIET);
    await socket.opened();
    expect(socket.send(data)).toBe("sent");
    await until("the message", () => a.received.length === 1);
    expect(a.received).toEqual([expected]);
  });
});

describe("a slow peer", () => {
  it("is waited for by ready(), and memory stays bounded (W34)", async () => {
    const a = await startNode();
    a.accepted = (socket) => socket.pause();
    const options = {
      ...QUIET,
      highWaterMarkBytes: 65_536,
      lowWaterMarkBytes: 16_384,
      queue: { maxBytes: 65_536 },
    };
    const socket = socketTo(fleetOf([a.url]), options);
    await socket.opened();
    const message = Buffer.alloc(8_192, 1);
    const count = inject("size") === "long" ? 12_500 : 2_500;
    let highest = 0;
    let queued = 0;
    let full = 0;
    const sending = (async () => {
      for (let n = 0; n < count; n += 1) {
        await socket.ready();
        if (socket.send(message) === "queued") queued += 1;
        highest = Math.max(highest, socket.bufferedAmount);
      }
      await socket.ready();
    })();
    await until("ready() to hold the sender up", () => socket.bufferedAmount >= 16_384);
    // Those who do not wait are queued, and then told.
    for (let n = 0; n < 40; n += 1) {
      try {
        if (socket.send(message) === "queued") queued += 1;
      } catch (error) {
        expect(error).toMatchObject({ code: "CELLKIT_CLIENT_WS_BUFFER" });
        full += 1;
      }
    }
    expect(queued).toBeGreaterThan(0);
    expect(full).toBeGreaterThan(0);
    a.sockets[0]?.resume();
    await sending;
    await until("everything", () => a.received.length === count + 40 - full);
    expect(highest).toBeLessThan(65_536 + 65_536 + 2 * message.length);
  });

  it("does not keep ready() from rejecting at the end", async () => {
    const { socket } = await held({ lowWaterMarkBytes: 1 });
    socket.send("a");
    const reason = new RangeError("enough");
    await expect(socket.ready(AbortSignal.abort(reason))).rejects.toBe(reason);
    const waiting = socket.ready();
    void socket.close();
    await expect(waiting).rejects.toMatchObject({ name: "InvalidStateError" });
  });
});

describe("onOpen that fails", () => {
  it.each([
    ["by throwing", () => Promise.reject(new RangeError("no token")), false],
    ["by taking too long", () => new Promise<void>(() => {}), true],
  ])("%s gives the connection up, and the next one may work", async (_, fail, timesOut) => {
    const a = await startNode();
    let calls = 0;
    const errors: unknown[] = [];
    const handshakeTimeoutMs = 21_302;
    const timers = holdTimers(handshakeTimeoutMs);
    const socket = socketTo(fleetOf([a.url]), {
      ...QUIET,
      handshakeTimeoutMs,
      onOpen: () => {
        calls += 1;
        return calls === 1 ? fail() : undefined;
      },
    });
    socket.onreconnecting = ({ error }) => errors.push(error);
    await until("the first", () => calls > 0);
    // The first is the dial's, the second that of what hangs.
    if (timesOut) timers[1]?.();
    await socket.opened();
    await until("the goodbye", () => a.closes.length === 1);
    expect(a.closes).toEqual([{ code: 4000, reason: "onOpen failed" }]);
    expect([calls, errors.length, a.requests.length]).toEqual([2, 1, 2]);
  });
});
