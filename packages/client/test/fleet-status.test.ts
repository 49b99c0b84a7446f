import { describe, expect, it } from "vitest";
import { alwaysFirst, ask, fleetOf, plannedRetries, raw } from "./support/fleet.ts";
import { startNode, startRawNode } from "./support/node-server.ts";

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
    const planned = plannedRetries();
    expect((await ask(fleet)).status).toBe(200);
    expect(planned.map(({ delayMs }) => delayMs < 25)).toEqual([true]);
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
    const planned = plannedRetries();
    const answer = await ask(fleet);
    expect(answer.status).toBe(200);
    expect(planned.map(({ delayMs }) => delayMs >= 1_000)).toEqual([false, true, true]);
    for (const { delayBeforeMs } of answer.attempts.slice(2))
      expect(delayBeforeMs).toBeGreaterThanOrEqual(990);
    // A refusal proves that nothing ran, and says nothing of coming back: it ends with maxAttempts.
    a.draining = true;
    const brief = { maxAttempts: 2, waitForNodeMs: 50 };
    expect((await ask(fleet, { fleet: brief })).classes).toEqual(["refused", "refused"]);
  });
});
