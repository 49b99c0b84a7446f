import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { interceptors } from "undici";
import { describe, expect, it } from "vitest";
import { Fleet } from "../src/fleet.ts";
import { nodesOf } from "../src/fleet-nodes.ts";
import { closedPort } from "./support/closed-port.ts";
import { alwaysFirst, ask, authority, failure, fleetOf } from "./support/fleet.ts";
import { startNode, startRawNode, until } from "./support/node-server.ts";

describe("a fleet", () => {
  it("H21 a response that breaks off errors its body; no second request, no Range", async () => {
    await using a = await startRawNode((socket) => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf", () => socket.destroy());
    });
    await using b = await startNode("b");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const response = await fleet.request({ method: "GET", path: "/" });
    expect(response.statusCode).toBe(200);
    await failure(response.body.text());
    expect([a.requestCount, b.seen.length]).toEqual([1, 0]);
  });

  it("H22 200 with Connection: close is delivered, probes the node once, and the next call connects anew", async () => {
    await using a = await startNode("a");
    a.respond = (_seen, response) => response.writeHead(200, { connection: "close" }).end("x");
    // A clock that stands still: however long the two calls take, both are within a second.
    await using fleet = fleetOf([a], { internals: { now: () => 0 } });
    expect((await ask(fleet)).text).toBe("x");
    await until(() => a.probeCount >= 1, "the probe");
    expect((await ask(fleet)).text).toBe("x");
    // Calls that hint at nothing, and take as long as another probe would.
    a.respond = (_seen, response) => response.end("y");
    for (let call = 0; call < 5; call += 1) await ask(fleet);
    expect(a.probeCount).toBe(1);
    expect(new Set(a.seen.slice(0, 2).map(({ connection }) => connection)).size).toBe(2);
  });

  it("H45 a node that never comes back gets one trial at a time after its bound", async () => {
    await using a = await startNode("a");
    a.draining = true;
    await using fleet = fleetOf([a], { health: { boundMs: 200 }, retry: { waitForNodeMs: 5_000 } });
    const states: string[] = [];
    nodesOf(fleet).onChange(({ to }) => states.push(to));
    const answer = await ask(fleet, { method: "POST", body: "x", fleet: { maxAttempts: 2 } });
    expect(answer.classes).toEqual(["refused", "refused"]);
    expect(states.slice(0, 3)).toEqual(["draining", "probation", "draining"]);
    await until(() => fleet.nodes[0]?.state === "probation", "probation");
    a.draining = false;
    a.respond = (_seen, response) => response.end("back");
    const asking = Array.from({ length: 5 }, () => ask(fleet));
    // All five have looked for a node by now: one is on its way, the others wait for what comes of it.
    expect(fleet.nodes[0]).toMatchObject({ state: "probation", inflight: 1 });
    expect((await Promise.all(asking)).map(({ text }) => text)).toEqual(Array(5).fill("back"));
    expect(fleet.nodes[0]?.state).toBe("admitted");
  });

  it("H46 five connect failures eject a node, and never more than half of them", async () => {
    await using a = await closedPort();
    await using b = await closedPort();
    await using c = await closedPort();
    await using d = await closedPort();
    const retry = { budget: false, deadlineMs: 0, baseDelayMs: 0 } as const;
    await using fleet = fleetOf([a, b, c, d], { retry, outlier: { baseMs: 600_000, maxMs: 600_000 } });
    for (let call = 0; call < 15; call += 1) await failure(ask(fleet));
    const states = fleet.nodes.map(({ state }) => state).sort();
    expect(states).toEqual(["admitted", "admitted", "ejected", "ejected"]);
    expect(fleet.nodes.find(({ state }) => state === "ejected")?.ejectedUntil).toBeGreaterThan(Date.now());
  });

  it("H47 nodes that all fail are still tried, and the first success heals", async () => {
    await using closed = await closedPort();
    await using fleet = fleetOf([closed], { retry: { deadlineMs: 0 } });
    await failure(ask(fleet));
    await failure(ask(fleet));
    expect(nodesOf(fleet).all[0]?.state.failures).toBeGreaterThanOrEqual(8);
    await using a = await startNode("a", closed.port);
    expect(await ask(fleet)).toMatchObject({ text: "a" });
    expect(a.seen).toHaveLength(1);
    expect(nodesOf(fleet).all[0]?.state).toMatchObject({ name: "admitted", failures: 0 });
  });

  it("an ejected node returns when its health answers", async () => {
    await using closed = await closedPort();
    await using b = await startNode("b");
    await using fleet = fleetOf([closed, b], {
      outlier: { consecutive: 1 },
      internals: alwaysFirst,
    });
    await ask(fleet);
    expect(fleet.nodes[0]?.state).toBe("ejected");
    await using a = await startNode("a", closed.port);
    await until(() => fleet.nodes[0]?.state === "admitted", "the return");
    expect(a.probeCount).toBeGreaterThanOrEqual(1);
  });

  it("a node whose health says 503 twice is unhealthy, and comes back with 200", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    await using fleet = fleetOf([a, b], { health: { intervalMs: 50 } });
    const nodes = nodesOf(fleet);
    const changes: string[] = [];
    nodes.onChange(({ node, from, to }) =>
      changes.push(`${node.id === fleet.nodes[0]?.id ? "a" : "b"} ${from} ${to}`),
    );
    const [node] = nodes.all;
    if (node === undefined) throw new TypeError("the fleet has no node");
    const release = nodes.watch(node);
    a.healthStatus = 503;
    await until(() => fleet.nodes[0]?.state === "unhealthy", "the 503s");
    a.healthStatus = 200;
    await until(() => fleet.nodes[0]?.state === "admitted", "the 200");
    release();
    expect(changes).toEqual(["a admitted unhealthy", "a unhealthy admitted"]);
  });

  it("H50 a slow node gets clearly fewer calls than its share", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    await using c = await startNode("c");
    let left = 300;
    const slow: { readonly fromCount: number; answer(): void }[] = [];
    // Slow is who answers when the two others have answered 30 calls more, or when nobody else is left to do so.
    const served = (): void => {
      const count = b.seen.length + c.seen.length;
      const stuck = left <= 0 || slow.length === 10;
      while (slow[0] !== undefined && (stuck || count >= slow[0].fromCount + 30)) slow.shift()?.answer();
    };
    a.respond = (_seen, response) => {
      slow.push({
        fromCount: b.seen.length + c.seen.length,
        answer: () => void response.end("slow"),
      });
      served();
    };
    for (const fast of [b, c]) {
      fast.respond = (_seen, response) => {
        response.end("fast");
        served();
      };
    }
    await using fleet = fleetOf([a, b, c], { retry: { perTryTimeoutMs: 0 } });
    const worker = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        await ask(fleet);
      }
    };
    await Promise.all(Array.from({ length: 10 }, worker));
    expect(a.seen.length).toBeLessThan(75);
  });

  it("H53 shows every node the authority as Host, whatever the caller's headers say", async () => {
    await using a = await startNode("a");
    await using fleet = fleetOf([a]);
    await ask(fleet);
    await ask(fleet, { headers: { Host: "elsewhere.internal", "x-mine": "1" } });
    await ask(fleet, { headers: ["host", "elsewhere.internal"] });
    await ask(fleet, { headers: new Map([["host", "elsewhere.internal"]]) as never });
    expect(a.seen.map(({ headers }) => headers.host)).toEqual(Array(4).fill("app.internal"));
    expect(a.seen[1]?.headers["x-mine"]).toBe("1");
  });

  it("sends a request for another origin outside the fleet", async () => {
    await using a = await startNode("a");
    await using other = await startNode("other");
    await using fleet = fleetOf([a]);
    const response = await fleet.request({ origin: other.url, method: "GET", path: "/" });
    expect(await response.body.text()).toBe("other");
    expect((await fleet.request({ origin: new URL(authority), method: "GET", path: "/" })).statusCode).toBe(
      200,
    );
    expect([a.seen.length, other.seen.length]).toEqual([1, 1]);
  });

  it("H55 works under undici's redirect interceptor, and under stream", async () => {
    await using a = await startNode("a");
    a.respond = (seen, response) => {
      if (seen.url === "/old") response.writeHead(302, { location: "/new" }).end();
      else response.end(`at ${seen.url}`);
    };
    await using fleet = fleetOf([a]);
    const composed = fleet.compose(interceptors.redirect({ maxRedirections: 2 }));
    const response = await composed.request({ origin: authority, method: "GET", path: "/old" });
    expect(await response.body.text()).toBe("at /new");
  });

  it("H58 holds a slow reader's response back, through a retry", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    a.draining = true;
    let wrote = 0;
    b.respond = async (_seen, response) => {
      const chunk = Buffer.alloc(65_536);
      for (let sent = 0; sent < 50 * 1024 * 1024; sent += chunk.length) {
        if (!response.write(chunk)) await new Promise((resolve) => response.once("drain", resolve));
        wrote += chunk.length;
      }
      response.end();
    };
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const response = await fleet.request({ method: "GET", path: "/" });
    await until(() => wrote > 65_536, "the first chunks");
    // With nobody reading, what is written stops at what the two sockets and the stream hold.
    let settledAt = -1;
    await until(() => {
      const still = wrote === settledAt;
      settledAt = wrote;
      return still;
    }, "the standstill");
    expect(wrote).toBeLessThan(25 * 1024 * 1024);
    let read = 0;
    for await (const chunk of response.body) read += (chunk as Buffer).length;
    expect(read).toBe(50 * 1024 * 1024);
  });

  it("H60 close lets calls under way finish, takes no new ones, and may be called again", async () => {
    await using a = await startNode("a");
    let answer: (() => void) | undefined;
    a.respond = (_seen, response) => {
      answer = () => void response.end("last");
    };
    const fleet = fleetOf([a]);
    const asking = ask(fleet);
    await until(() => answer !== undefined, "the request");
    const closing = fleet.close();
    expect(fleet.close()).toBe(closing);
    expect(await failure(ask(fleet))).toMatchObject({ code: "UND_ERR_CLOSED" });
    answer?.();
    expect((await asking).text).toBe("last");
    await closing;
    await until(() => a.sockets.size === 0, "the sockets");
  });

  it("destroy ends calls under way, and those that wait for a node", async () => {
    await using a = await startRawNode(() => undefined);
    const fleet = fleetOf([a]);
    const asking = failure(ask(fleet));
    await until(() => a.requestCount === 1, "the request");
    const never = new Fleet({ authority, endpoints: (async function* () {})() });
    const waiting = failure(ask(never));
    const reason = new RangeError("over");
    await Promise.all([fleet.destroy(reason), never.destroy(reason)]);
    expect(await asking).toBe(reason);
    expect(await waiting).toBe(reason);
    expect(await failure(ask(fleet))).toMatchObject({ code: "UND_ERR_DESTROYED" });
  });

  it("H62 keeps trailers and raw headers", async () => {
    await using a = await startRawNode((socket) => {
      socket.write(
        "HTTP/1.1 200 OK\r\nX-Mixed-Case: Yes\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nx-sum: 7\r\n\r\n",
      );
    });
    await using fleet = fleetOf([a]);
    const response = await fleet.request({ method: "GET", path: "/", responseHeaders: "raw" });
    expect(await response.body.text()).toBe("hi");
    expect(response.trailers).toEqual({ "x-sum": "7" });
    expect(response.headers).toContain("X-Mixed-Case");
  });

  it("passes an upgrade on, to one node", async () => {
    await using a = await startRawNode((socket) => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: thing\r\n\r\nhello");
    });
    await using fleet = fleetOf([a]);
    const { socket } = await fleet.upgrade({ path: "/", protocol: "thing" });
    const [first] = await new Promise<Buffer[]>((resolve) =>
      socket.once("data", (...data: Buffer[]) => resolve(data)),
    );
    expect(first?.toString()).toBe("hello");
    socket.destroy();
  });

  it("sends an upgrade that fails nowhere else", async () => {
    await using a = await startRawNode((socket) => socket.destroy());
    await using b = await startNode("b");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const error = await failure(fleet.upgrade({ path: "/", protocol: "thing" }));
    expect(error).toMatchObject({ code: "CELLKIT_CLIENT_ATTEMPTS", attempts: [{ class: "ambiguous" }] });
    expect([a.requestCount, b.seen.length]).toEqual([1, 0]);
  });

  it("tells what happens on diagnostics_channel", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    a.draining = true;
    const told: string[] = [];
    const names = ["call:start", "call:end", "attempt:start", "attempt:end", "retry", "node"].map(
      (name) => `fleet:${name}`,
    );
    const listeners = names.map((name) => {
      const listener = (): void => void told.push(name);
      subscribe(name, listener);
      return () => unsubscribe(name, listener);
    });
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    await ask(fleet);
    for (const stop of listeners) stop();
    expect(told).toEqual([
      "fleet:call:start",
      "fleet:attempt:start",
      "fleet:attempt:end",
      "fleet:node",
      "fleet:retry",
      "fleet:attempt:start",
      "fleet:attempt:end",
      "fleet:call:end",
    ]);
  });
});
