import { describe, expect, it } from "vitest";
import { alwaysFirst, ask, failure, fleetOf } from "./support/fleet.ts";
import { startNode, startRawNode, until } from "./support/node-server.ts";

describe("time", () => {
  it("H30 a GET slower than perTryTimeoutMs is cut and tried elsewhere", async () => {
    await using a = await startRawNode(() => undefined);
    await using b = await startNode("b");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst, retry: { perTryTimeoutMs: 300 } });
    const answer = await ask(fleet);
    expect(answer.text).toBe("b");
    expect([answer.classes[0], answer.classes.at(-1)]).toEqual(["ambiguous", "answered"]);
    expect(answer.attempts[0]).toMatchObject({ error: { code: "UND_ERR_HEADERS_TIMEOUT" } });
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
    let nowMs = 0;
    await using fleet = fleetOf([a], { retry: { deadlineMs: 100 }, internals: { now: () => nowMs } });
    let ended = false;
    const asking = failure(ask(fleet, { method: "POST", body: "x" })).finally(() => {
      ended = true;
    });
    await until(() => a.requestCount === 1, "the request");
    expect(ended).toBe(false);
    nowMs = 100;
    const error = await asking;
    expect(error).toMatchObject({
      name: "TimeoutError",
      code: "CELLKIT_CLIENT_DEADLINE",
      attempts: [{ class: "ambiguous" }],
    });
    await until(() => a.sockets.size === 0, "the cut connection");
  });

  it("H32 the deadline ends a backoff, and nothing is sent after it", async () => {
    await using a = await startNode("a");
    a.respond = (_seen, response) => response.writeHead(503).end();
    const retry = { deadlineMs: 150, baseDelayMs: 600_000, maxDelayMs: 600_000 };
    // The fleet's clock stands still: the attempt takes nothing from the 150 ms, which the backoff would outlast by far.
    await using fleet = fleetOf([a], { retry, internals: { random: () => 0.9, now: () => 0 } });
    const error = await failure(ask(fleet));
    expect(error).toMatchObject({ code: "CELLKIT_CLIENT_DEADLINE", attempts: [{ class: "app-status" }] });
    expect(a.seen).toHaveLength(1);
  });

  it("H33 abort ends a backoff with its reason, and nothing is sent after it", async () => {
    await using a = await startNode("a");
    a.respond = (_seen, response) => response.writeHead(503).end();
    // Without the abort this backoff would outlast the test.
    const retry = { baseDelayMs: 600_000, maxDelayMs: 600_000, deadlineMs: 0 };
    await using fleet = fleetOf([a], { retry, internals: { random: () => 0.4 } });
    const abort = new AbortController();
    const asking = failure(ask(fleet, { signal: abort.signal }));
    await until(() => a.seen.length === 1 && fleet.nodes[0]?.inflight === 0, "the backoff");
    const reason = new RangeError("enough");
    abort.abort(reason);
    expect(await asking).toBe(reason);
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
