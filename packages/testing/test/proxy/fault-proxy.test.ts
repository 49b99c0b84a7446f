import { request } from "undici";
import { describe, expect, it } from "vitest";
import {
  dispatcher,
  type FaultProxyOptions,
  faultProxy,
  httpMessages,
  lines,
  TestingOptionError,
  until,
} from "../../src/index.ts";
import { call, failureOf, submit } from "../support/call.ts";
import { dial, tcpServer } from "../support/peers.ts";

/** A client and a server with a proxy of lines between them. */
async function pair(options: FaultProxyOptions = { messages: lines }) {
  const server = await tcpServer();
  const proxy = await faultProxy(server.address, options);
  const near = await dial(proxy);
  const far = await until("the connection behind the proxy", () => server.connections[0]);
  return { proxy, near, far, server, [Symbol.asyncDispose]: () => proxy.close() };
}

describe("a proxy", () => {
  it("passes everything on in both directions, and ends in order", async () => {
    await using it = await pair();
    it.near.socket.write("one\ntwo\nhal");
    await until("two lines", () => it.far.text === "one\ntwo\n");
    it.near.socket.end("f");
    await until("the rest and the end", () => it.far.ended && it.far.text === "one\ntwo\nhalf");
    it.far.socket.end("answer\n");
    await until("the answer and the end", () => it.near.ended && it.near.text === "answer\n");
    await until("both gone", () => it.proxy.openCount === 0);
    expect(it.proxy.seen.map(({ direction, index, bytes }) => [direction, index, bytes.toString()])).toEqual([
      ["out", 0, "one\n"],
      ["out", 1, "two\n"],
      ["back", 0, "answer\n"],
    ]);
  });

  it("passes much, and takes no more than the receiver does", async () => {
    await using it = await pair({});
    it.far.socket.pause();
    const text = "0123456789abcdef".repeat(2_500_000);
    it.near.socket.end(text);
    const passed = () => it.proxy.seen.reduce((bytes, message) => bytes + message.bytes.length, 0);
    let [before, sameCount] = [0, 0];
    await until("the proxy to wait", () => {
      sameCount = passed() === before ? sameCount + 1 : 0;
      before = passed();
      return before > 0 && sameCount > 20;
    });
    expect(before).toBeLessThan(text.length);
    it.far.socket.resume();
    await until("all of it", () => it.far.ended, { timeoutMs: 50_000 });
    expect(it.far.text === text).toBe(true);
  });

  it("delays and holds without changing the order", async () => {
    await using it = await pair();
    const { promise, resolve } = Promise.withResolvers<void>();
    it.proxy.next({ direction: "out", index: 0 }, { kind: "delay", delayMs: 20 });
    it.proxy.next({ direction: "out", index: 1 }, { kind: "hold", until: promise });
    it.near.socket.write("one\ntwo\nthree\n");
    await until("the first", () => it.far.text === "one\n");
    it.far.socket.write("back\n");
    await until("the other direction", () => it.near.text === "back\n");
    expect(it.far.text).toBe("one\n");
    resolve();
    await until("the rest", () => it.far.text === "one\ntwo\nthree\n");
  });

  it("drops and replaces one message", async () => {
    await using it = await pair();
    it.proxy.next({ index: 0 }, { kind: "drop" });
    it.proxy.next({ index: 1 }, { kind: "replace", bytes: "other\n" });
    it.near.socket.write("one\ntwo\nthree\n");
    await until("the third", () => it.far.text === "other\nthree\n");
  });

  it("cuts between two messages: what came before arrives, both sides are reset", async () => {
    await using it = await pair({
      messages: lines,
      choose: ({ bytes }) => ({ kind: bytes.toString() === "two\n" ? "cut" : "pass" }),
    });
    it.near.socket.write("one\n");
    await until("the first", () => it.far.text === "one\n");
    it.near.socket.write("two\n");
    await until("the reset of both", () => it.near.closed === "reset" && it.far.closed === "reset");
    expect(it.far.text).toBe("one\n");
  });

  it("truncates a message: its begin comes, and then nothing more", async () => {
    await using it = await pair();
    it.proxy.next({ direction: "back" }, { kind: "truncate", afterBytes: 2 });
    it.far.socket.write("answer\n");
    // Node 22 ends a connection that it has just written to before it resets it.
    const isOver = () => it.near.ended || it.near.closed === "reset";
    await until("the end of both", () => isOver() && it.far.closed === "reset");
    expect("an".startsWith(it.near.text)).toBe(true);
  });

  it("ends in order instead of passing on", async () => {
    await using it = await pair();
    it.proxy.next({}, { kind: "end" });
    it.near.socket.write("one\n");
    await until("the end on both sides", () => it.near.ended && it.far.ended);
    expect(it.far.text).toBe("");
    expect([it.near.closed, it.far.closed]).toEqual([undefined, undefined]);
  });

  it("leaves connections half open: nothing passes, nothing is closed", async () => {
    await using it = await pair();
    it.proxy.next({ index: 1 }, { kind: "freeze" });
    it.near.socket.write("one\ntwo\nthree\n");
    await until("the first", () => it.far.text === "one\n");
    it.far.socket.end("back\n");
    const other = await dial(it.proxy);
    other.socket.write("one\n");
    await until("another connection's first", () => it.server.connections[1]?.text === "one\n");
    expect(it.near).toMatchObject({ text: "", ended: false, closed: undefined });
    expect(it.far.text).toBe("one\n");
  });

  it("delivers late: the sender is reset at once, the message arrives afterwards", async () => {
    await using it = await pair();
    const { promise, resolve } = Promise.withResolvers<void>();
    it.proxy.next({}, { kind: "deliver-late", until: promise });
    it.near.socket.write("one\n");
    await until("the sender's reset", () => it.near.closed === "reset");
    expect(it.far.text).toBe("");
    resolve();
    await until("the message", () => it.far.text === "one\n");
  });

  it("strikes all connections, refuses new ones, and heals", async () => {
    await using it = await pair();
    it.proxy.strike("reset");
    await until("the reset of both", () => it.near.closed === "reset" && it.far.closed === "reset");
    it.proxy.refuse();
    await failureOf(dial(it.proxy));
    await it.proxy.heal();
    await it.proxy.heal();
    const again = await dial(it.proxy);
    it.proxy.strike("end");
    await until("an end in order", () => again.ended);
  });

  it("resets one side when the other is reset", async () => {
    await using it = await pair();
    it.far.socket.resetAndDestroy();
    await until("the reset", () => it.near.closed === "reset");
  });

  it.each(["", "http://", "somewhere", "tcp://host"])("refuses the target %j", async (target) => {
    expect(await failureOf(faultProxy(target))).toBeInstanceOf(TestingOptionError);
  });
});

it("between a caller and a dispatcher, a lost answer is a run that its caller does not know of", async () => {
  await using backend = await dispatcher();
  await using proxy = await faultProxy(backend.origin, { messages: httpMessages });
  proxy.next({ direction: "back" }, { kind: "cut" });
  expect((await submit(proxy.url, "a")).status).toBeUndefined();
  expect(backend.runs.get("a")).toBe(1);
  expect((await submit(proxy.url, "a")).status).toBe(200);
  expect(proxy.seen.filter(({ direction }) => direction === "out")).toHaveLength(2);
  const { body } = await request(`${proxy.url}/v1/health`);
  expect(await body.json()).toMatchObject({ ok: true });
  expect((await call(proxy.url, "GET", "/v1/executions/a")).status).toBe(200);
});
