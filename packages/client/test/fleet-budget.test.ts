import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { describe, expect, it } from "vitest";
import { ask, failure, fleetOf } from "./support/fleet.ts";
import { startNode, startRawNode } from "./support/node-server.ts";

/** A node that closes the connection as soon as it has a request. */
const startDeafNode = () => startRawNode((socket) => socket.destroy());

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

  it("H38 holds when every node answers 503: at most 1.2 x calls + 10 in a second that does not end", async () => {
    await using a = await startNode("a");
    a.respond = (_seen, response) => response.writeHead(503).end();
    const retry = {
      baseDelayMs: 1,
      maxDelayMs: 1,
      budget: { ratio: 0.2, minPerSecond: 10, windowMs: 1_000 },
    };
    // The clock stands still, so the window never moves: how it does is in core/small-parts.test.ts.
    await using fleet = fleetOf([a], { retry, internals: { now: () => 0 } });
    let calls = 0;
    for (; calls < 500; calls += 25) await Promise.all(Array.from({ length: 25 }, () => ask(fleet)));
    expect(a.seen.length).toBeGreaterThan(1.2 * calls);
    expect(a.seen.length).toBeLessThanOrEqual(1.2 * calls + 10);
  });
});
