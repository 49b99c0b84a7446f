import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { connect } from "node:net";
import { errors } from "undici";
import { describe, expect, it } from "vitest";
import { alwaysFirst, ask, failure, fleetOf, raw } from "./support/fleet.ts";
import { closedPort, startNode, startRawNode, until } from "./support/node-server.ts";

/** A node that closes the connection as soon as it has a request. */
const startDeafNode = () => startRawNode((socket) => socket.destroy());

describe("an application's own status", () => {
  it("H07 503 to a POST is returned after one attempt", async () => {
    await using a = await startNode("a");
    a.respond = (_seen, response) => response.writeHead(503).end("busy");
    await using fleet = fleetOf([a]);
    expect(await ask(fleet, { method: "POST", body: "x" })).toMatchObject({
      status: 503,
      text: "busy",
      classes: ["app-status"],
    });
    expect(a.seen).toHaveLength(1);
  });

  it("H08 503 to a GET is tried again at another node, charged", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    a.respond = (_seen, response) => response.writeHead(503).end("busy");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const answer = await ask(fleet);
    expect(answer).toMatchObject({ status: 200, text: "b", classes: ["app-status", "answered"] });
    expect(answer.attempts[1]).toMatchObject({ free: false });
  });

  it("H39 Worker refused is tried again for a POST, charged, and the node stays", async () => {
    const said = raw(
      "503 Service Unavailable",
      ["content-type: application/json"],
      "Worker refused: node is shedding load",
    );
    await using a = await startRawNode((socket) => socket.write(said));
    await using b = await startNode("b");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const answer = await ask(fleet, { method: "POST", body: "x" });
    expect(answer).toMatchObject({ text: "b", classes: ["overloaded", "answered"] });
    expect(answer.attempts[1]).toMatchObject({ free: false });
    expect(fleet.nodes[0]?.state).toBe("admitted");
  });

  it("H40 429 with Retry-After: 2 waits for two seconds", async () => {
    await using a = await startNode("a");
    a.respond = (seen, response) => {
      const first = a.seen.indexOf(seen) === 0;
      response.writeHead(first ? 429 : 200, first ? { "retry-after": "2" } : {}).end();
    };
    await using fleet = fleetOf([a]);
    const answer = await ask(fleet);
    expect(answer).toMatchObject({ status: 200, classes: ["app-status", "answered"] });
    expect(answer.attempts[1]?.delayBeforeMs).toBeGreaterThanOrEqual(1_990);
  });

  it.each(["Thu, 01 Jan 2015 00:00:00 GMT", "soon", "-5"])("H41 ignores Retry-After: %s", async (value) => {
    await using a = await startNode("a");
    a.respond = (seen, response) => {
      const first = a.seen.indexOf(seen) === 0;
      response.writeHead(first ? 503 : 200, { "retry-after": value }).end();
    };
    await using fleet = fleetOf([a]);
    const answer = await ask(fleet);
    expect(answer.status).toBe(200);
    expect(answer.attempts[1]?.delayBeforeMs).toBeLessThan(500);
  });

  it("H42 Retry-After: 3600 returns the answer at once", async () => {
    await using a = await startNode("a");
    a.respond = (_seen, response) => response.writeHead(429, { "retry-after": "3600" }).end("later");
    await using fleet = fleetOf([a]);
    expect(await ask(fleet)).toMatchObject({ status: 429, text: "later", classes: ["app-status"] });
  });

  it("H61 500 is returned, unless retryStatuses names it", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    a.respond = (_seen, response) => response.writeHead(500).end("Worker failed: x");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    expect(await ask(fleet)).toMatchObject({ status: 500, text: "Worker failed: x" });
    expect(await ask(fleet, { fleet: { retryStatuses: [500] } })).toMatchObject({ text: "b" });
  });

  it("goes on at one try a second beyond maxAttempts while a deadline is left", async () => {
    await using a = await startNode("a");
    a.respond = (_seen, response) => response.writeHead(a.seen.length < 4 ? 502 : 200).end();
    await using fleet = fleetOf([a], { retry: { maxAttempts: 2 } });
    const answer = await ask(fleet);
    expect(answer.status).toBe(200);
    expect(answer.attempts.map(({ delayBeforeMs }) => delayBeforeMs >= 990)).toEqual([
      false,
      false,
      true,
      true,
    ]);
    // A refusal proves that nothing ran, and says nothing of coming back: it ends with maxAttempts.
    a.draining = true;
    const brief = { maxAttempts: 2, waitForNodeMs: 50 };
    expect((await ask(fleet, { fleet: brief })).classes).toEqual(["refused", "refused"]);
  });
});

describe("a request that did not get through", () => {
  it("H14 POST to a closed port is sent to another node, free", async () => {
    const gone = { url: `http://127.0.0.1:${await closedPort()}` };
    await using b = await startNode("b");
    await using fleet = fleetOf([gone, b], { internals: alwaysFirst });
    const answer = await ask(fleet, { method: "POST", body: "x" });
    expect(answer).toMatchObject({ text: "b", classes: ["not-sent", "answered"] });
    expect(answer.attempts[0]?.error).toMatchObject({ code: "ECONNREFUSED" });
    expect(answer.attempts[1]).toMatchObject({ free: true });
  });

  it("H15 POST whose connect times out is sent to another node", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    const slow = (
      options: { port?: string },
      callback: (...result: [Error, null] | [null, never]) => void,
    ): void => {
      if (options.port === String(a.port)) {
        setTimeout(() => callback(new errors.ConnectTimeoutError(), null), 50);
        return;
      }
      const socket = connect(Number(options.port), "127.0.0.1", () => callback(null, socket as never));
    };
    await using fleet = fleetOf([a, b], { internals: alwaysFirst, pool: { connect: slow as never } });
    expect(await ask(fleet, { method: "POST", body: "x" })).toMatchObject({
      text: "b",
      classes: ["not-sent", "answered"],
    });
  });

  it("H16 GET whose connection closes without an answer is tried elsewhere, charged", async () => {
    await using a = await startDeafNode();
    await using b = await startNode("b");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const answer = await ask(fleet);
    expect(answer).toMatchObject({ text: "b", classes: ["ambiguous", "answered"] });
    expect(answer.attempts[1]).toMatchObject({ free: false });
  });

  it("H17 POST, same, fails as ambiguous after exactly one attempt", async () => {
    await using a = await startDeafNode();
    await using b = await startNode("b");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const error = await failure(ask(fleet, { method: "POST", path: "/order", body: "x" }));
    expect(error).toMatchObject({ code: "CELLKIT_CLIENT_AMBIGUOUS", attempts: [{ class: "ambiguous" }] });
    expect(error.message).toContain("POST /order");
    expect(error.cause).toBeInstanceOf(Error);
    expect(a.requestCount).toBe(1);
    expect(b.seen).toEqual([]);
  });

  it("H18 POST with an Idempotency-Key is tried elsewhere with the same key", async () => {
    const heads: string[] = [];
    await using a = await startRawNode((socket, head) => {
      heads.push(head);
      socket.destroy();
    });
    await using b = await startNode("b");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const headers = { "Idempotency-Key": "order-7" };
    expect(await ask(fleet, { method: "POST", body: "x", headers })).toMatchObject({ text: "b" });
    expect(heads[0]).toMatch(/idempotency-key: order-7/i);
    expect(b.seen[0]?.headers["idempotency-key"]).toBe("order-7");
  });

  it("H19 idempotencyKey: true makes one key for all attempts", async () => {
    const heads: string[] = [];
    await using a = await startRawNode((socket, head) => {
      heads.push(head);
      socket.destroy();
    });
    await using b = await startNode("b");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const call = {
      method: "POST",
      body: "x",
      fleet: { idempotencyKey: true, attemptHeader: "x-attempt" },
    } as const;
    expect(await ask(fleet, call)).toMatchObject({ text: "b" });
    const key = b.seen[0]?.headers["idempotency-key"];
    expect(key).toMatch(/^[0-9a-f-]{36}$/);
    expect(heads[0]).toContain(key);
    expect(heads[0]).not.toContain("x-attempt");
    expect(b.seen[0]?.headers["x-attempt"]).toBe("2");
  });

  it("H20 PUT with idempotent: false is not repeated", async () => {
    await using a = await startDeafNode();
    await using fleet = fleetOf([a]);
    const error = await failure(ask(fleet, { method: "PUT", body: "x", fleet: { idempotent: false } }));
    expect(error).toMatchObject({ code: "CELLKIT_CLIENT_AMBIGUOUS" });
    expect(a.requestCount).toBe(1);
  });

  it("ends with the last error when every attempt of an idempotent call fails", async () => {
    await using a = await startDeafNode();
    await using fleet = fleetOf([a], { retry: { deadlineMs: 0 } });
    const error = await failure(ask(fleet));
    expect(error).toMatchObject({ code: "CELLKIT_CLIENT_ATTEMPTS" });
    expect(error.attempts).toHaveLength(4);
  });

  it("blames no node for a request that no node could take", async () => {
    await using a = await startNode("a");
    await using fleet = fleetOf([a]);
    const error = await failure(
      ask(fleet, { method: "POST", body: "x", headers: { "content-length": "9" } }),
    );
    expect(error).toMatchObject({ code: "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH" });
    expect(fleet.nodes[0]?.state).toBe("admitted");
  });

  it("H59 a connection that the server closed in the moment of the call: GET recovered, POST ambiguous", async () => {
    await using a = await startRawNode((socket, _head, count) => {
      // The first request of each pair is served; the next one on that connection meets a close.
      if (count % 2 === 1) socket.write(raw("200 OK", []));
      else socket.destroy();
    });
    await using fleet = fleetOf([a]);
    await ask(fleet);
    expect(await ask(fleet)).toMatchObject({ status: 200, classes: ["ambiguous", "answered"] });
    expect(await failure(ask(fleet, { method: "POST", body: "x" }))).toMatchObject({
      code: "CELLKIT_CLIENT_AMBIGUOUS",
    });
  });
});

describe("time", () => {
  it("H30 a GET slower than perTryTimeoutMs is cut and tried elsewhere", async () => {
    await using a = await startRawNode(() => undefined);
    await using b = await startNode("b");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst, retry: { perTryTimeoutMs: 100 } });
    const answer = await ask(fleet);
    expect(answer).toMatchObject({ text: "b", classes: ["ambiguous", "answered"] });
    await until(() => a.sockets.size === 0, "the cut connection");
  });

  it("H31 a POST slower than perTryTimeoutMs is not cut", async () => {
    await using a = await startNode("a");
    a.respond = async (_seen, response) => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      response.end("slow");
    };
    await using fleet = fleetOf([a], { retry: { perTryTimeoutMs: 50 } });
    expect(await ask(fleet, { method: "POST", body: "x" })).toMatchObject({
      text: "slow",
      classes: ["answered"],
    });
  });

  it("H31 a POST ends at the deadline, as a TimeoutError", async () => {
    await using a = await startRawNode(() => undefined);
    await using fleet = fleetOf([a], { retry: { deadlineMs: 100 } });
    const startedMs = performance.now();
    const error = await failure(ask(fleet, { method: "POST", body: "x" }));
    expect(error).toMatchObject({
      name: "TimeoutError",
      code: "CELLKIT_CLIENT_DEADLINE",
      attempts: [{ class: "ambiguous" }],
    });
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(99);
    await until(() => a.sockets.size === 0, "the cut connection");
  });

  it("H32 the deadline ends a backoff, and nothing is sent after it", async () => {
    await using a = await startNode("a");
    a.respond = (_seen, response) => response.writeHead(503).end();
    const retry = { deadlineMs: 150, baseDelayMs: 60_000, maxDelayMs: 60_000 };
    await using fleet = fleetOf([a], { retry, internals: { random: () => 0.9 } });
    const startedMs = performance.now();
    const error = await failure(ask(fleet));
    expect(error).toMatchObject({ code: "CELLKIT_CLIENT_DEADLINE", attempts: [{ class: "app-status" }] });
    expect(performance.now() - startedMs).toBeLessThan(1_000);
    expect(a.seen).toHaveLength(1);
  });

  it("H33 abort ends a backoff with its reason, and nothing is sent after it", async () => {
    await using a = await startNode("a");
    a.respond = (_seen, response) => response.writeHead(503).end();
    const retry = { baseDelayMs: 60_000, maxDelayMs: 60_000 };
    await using fleet = fleetOf([a], { retry, internals: { random: () => 0.4 } });
    const abort = new AbortController();
    const asking = failure(ask(fleet, { signal: abort.signal }));
    await until(() => a.seen.length === 1 && fleet.nodes[0]?.inflight === 0, "the backoff");
    const reason = new RangeError("enough");
    const abortedMs = performance.now();
    abort.abort(reason);
    expect(await asking).toBe(reason);
    expect(performance.now() - abortedMs).toBeLessThan(1_000);
    expect(a.seen).toHaveLength(1);
  });

  it("H34 abort during an attempt destroys its socket and blames no node", async () => {
    await using a = await startRawNode(() => undefined);
    await using fleet = fleetOf([a], { outlier: { consecutive: 1, maxPercent: 100 } });
    const abort = new AbortController();
    const reason = new RangeError("enough");
    const asking = failure(ask(fleet, { signal: abort.signal }));
    await until(() => a.requestCount === 1, "the request");
    abort.abort(reason);
    expect(await asking).toBe(reason);
    await until(() => a.sockets.size === 0, "the socket");
    expect(fleet.nodes).toMatchObject([{ state: "admitted", inflight: 0 }]);
  });

  it("H35 a signal that is aborted already sends nothing", async () => {
    await using a = await startNode("a");
    await using fleet = fleetOf([a]);
    const reason = new RangeError("never");
    expect(await failure(ask(fleet, { signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect(a.sockets.size).toBe(0);
  });

  it("H36 many calls on one signal leave no listener", async () => {
    await using a = await startNode("a");
    await using fleet = fleetOf([a]);
    const { signal } = new AbortController();
    let listening = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...given: Parameters<typeof add>) => {
      listening += 1;
      add(...given);
    };
    signal.removeEventListener = (...given: Parameters<typeof remove>) => {
      listening -= 1;
      remove(...given);
    };
    for (let round = 0; round < 20; round += 1) {
      await Promise.all(Array.from({ length: 25 }, () => ask(fleet, { signal })));
    }
    await until(() => listening === 0, "the listeners");
  });
});

describe("the retry budget", () => {
  it("H37 empty: no retry, the result so far, and an event", async () => {
    await using a = await startNode("a");
    a.respond = (_seen, response) => response.writeHead(503).end("busy");
    await using fleet = fleetOf([a], { retry: { budget: { ratio: 0, minPerSecond: 0 } } });
    const told: unknown[] = [];
    const listener = (message: unknown): void => void told.push(message);
    subscribe("fleet:budget:empty", listener);
    const answer = await ask(fleet);
    unsubscribe("fleet:budget:empty", listener);
    expect(answer).toMatchObject({ status: 503, text: "busy", classes: ["app-status"] });
    expect(told).toMatchObject([{ class: "app-status" }]);
  });

  it("H37 empty, without a response: RetryBudgetError", async () => {
    await using a = await startDeafNode();
    await using fleet = fleetOf([a], { retry: { budget: { ratio: 0, minPerSecond: 0 } } });
    expect(await failure(ask(fleet))).toMatchObject({ code: "CELLKIT_CLIENT_BUDGET" });
  });

  it("H38 holds when every node answers 503: at most 1.2 x calls + 10/s", async () => {
    await using a = await startNode("a");
    a.respond = (_seen, response) => response.writeHead(503).end();
    const retry = {
      baseDelayMs: 1,
      maxDelayMs: 1,
      budget: { ratio: 0.2, minPerSecond: 10, windowMs: 1_000 },
    };
    await using fleet = fleetOf([a], { retry });
    const startedMs = performance.now();
    let calls = 0;
    for (; calls < 500; calls += 25) await Promise.all(Array.from({ length: 25 }, () => ask(fleet)));
    const seconds = (performance.now() - startedMs) / 1_000;
    expect(a.seen.length).toBeGreaterThan(calls);
    expect(a.seen.length).toBeLessThanOrEqual(1.2 * calls + 10 * (seconds + 1));
  });
});
