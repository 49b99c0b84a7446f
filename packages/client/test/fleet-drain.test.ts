import { describe, expect, it } from "vitest";
import { alwaysFirst, ask, failure, fleetOf, plannedRetries, raw } from "./support/fleet.ts";
import { refusal, startNode, startRawNode, until } from "./support/node-server.ts";

describe("a drain refusal", () => {
  it("H01 leaves a healthy answer alone: one attempt, everything passed through", async () => {
    await using a = await startNode("a");
    a.respond = (_seen, response) => response.writeHead(201, "Made", { "x-mine": "yes" }).end("body");
    await using fleet = fleetOf([a]);
    const answer = await ask(fleet);
    expect(answer).toMatchObject({ status: 201, text: "body", headers: { "x-mine": "yes" } });
    expect(answer.attempts).toMatchObject([
      { n: 1, node: `127.0.0.1:${a.port}`, class: "answered", status: 201 },
    ]);
  });

  it("H01 leaves no timer that keeps the process alive and no request counted", async () => {
    await using a = await startNode("a");
    await using fleet = fleetOf([a]);
    const before = process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
    await ask(fleet);
    expect(process.getActiveResourcesInfo().filter((name) => name === "Timeout").length).toBeLessThanOrEqual(
      before,
    );
    expect(fleet.nodes[0]?.inflight).toBe(0);
  });

  it("H02 sends a GET to another node at once, in spite of retry-after", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    a.draining = true;
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const planned = plannedRetries();
    const answer = await ask(fleet);
    expect(answer).toMatchObject({ status: 200, text: "b", classes: ["refused", "answered"] });
    expect(planned).toEqual([{ class: "refused", from: `127.0.0.1:${a.port}`, free: true, delayMs: 0 }]);
    expect(answer.attempts[1]).toMatchObject({ free: true });
    expect(fleet.nodes.map(({ state }) => state)).toEqual(["draining", "admitted"]);
  });

  it("H03 sends a POST to another node with the same bytes, once", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    a.draining = true;
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    const answer = await ask(fleet, { method: "POST", body: "the only one" });
    expect(answer).toMatchObject({ text: "b", classes: ["refused", "answered"] });
    expect(a.seen).toEqual([]);
    expect(b.seen.map(({ body }) => body)).toEqual(["the only one"]);
  });

  it("H04 of every node waits for one, tries again, and answers the last 503", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    await using c = await startNode("c");
    for (const node of [a, b, c]) node.draining = true;
    await using fleet = fleetOf([a, b, c], { retry: { waitForNodeMs: 200 } });
    const startedMs = performance.now();
    const answer = await ask(fleet, { method: "POST", body: "x" });
    expect(answer).toMatchObject({ status: 503, text: '{"ok":false,"draining":true}' });
    expect(answer.classes).toEqual(["refused", "refused", "refused", "refused"]);
    expect(performance.now() - startedMs).toBeGreaterThan(190);
  });

  it("H04 of every node is over as soon as one is back", async () => {
    await using a = await startNode("a");
    a.draining = true;
    await using fleet = fleetOf([a], { retry: { waitForNodeMs: 8_000 } });
    const answering = ask(fleet, { method: "POST", body: "x" });
    await until(() => a.refusedCount === 1, "the refusal");
    a.draining = false;
    expect(await answering).toMatchObject({ status: 200, classes: ["refused", "answered"] });
  });

  it("H05 behind one load-balanced address opens a new connection and sets nothing aside", async () => {
    const connections: unknown[] = [];
    await using a = await startRawNode((socket, _head, count) => {
      connections.push(socket);
      if (count === 1) socket.end(refusal);
      else socket.write(raw("200 OK", [], "served"));
    });
    await using fleet = fleetOf([], { endpoints: [{ url: a.url, loadBalanced: true }] });
    const planned = plannedRetries();
    const answer = await ask(fleet, { method: "POST", body: "x" });
    expect(answer).toMatchObject({ status: 200, text: "served", classes: ["refused", "answered"] });
    expect(planned).toEqual([
      { class: "refused", from: `127.0.0.1:${a.port}`, free: true, delayMs: expect.closeTo(50, -2) },
    ]);
    expect(new Set(connections).size).toBe(2);
    expect(fleet.nodes).toMatchObject([{ state: "admitted" }]);
  });

  it("H06 of a load-balanced address ends after maxAttempts, with Retry-After a floor from the third", async () => {
    const atMs: number[] = [];
    await using a = await startRawNode((socket) => {
      atMs.push(performance.now());
      socket.end(refusal);
    });
    await using fleet = fleetOf([], { endpoints: [{ url: a.url, loadBalanced: true }] });
    const answer = await ask(fleet, { method: "POST", body: "x", fleet: { maxAttempts: 4 } });
    expect(answer.status).toBe(503);
    expect(answer.attempts).toHaveLength(4);
    expect((atMs[2] ?? 0) - (atMs[1] ?? 0)).toBeGreaterThanOrEqual(990);
    expect((atMs[3] ?? 0) - (atMs[2] ?? 0)).toBeGreaterThanOrEqual(990);
  });

  it("H09 without Connection: close is the application's under strict, and a refusal under body", async () => {
    const open = raw(
      "503 Service Unavailable",
      ["content-type: application/json"],
      '{"ok":false,"draining":true}',
    );
    await using a = await startRawNode((socket) => socket.write(open));
    await using b = await startNode("b");
    await using strict = fleetOf([a, b], { internals: alwaysFirst });
    expect(await ask(strict, { method: "POST", body: "x" })).toMatchObject({
      status: 503,
      classes: ["app-status"],
    });
    expect(strict.nodes[0]?.state).toBe("admitted");
    await using body = fleetOf([a, b], { internals: alwaysFirst, drainMarker: "body" });
    expect(await ask(body, { method: "POST", body: "x" })).toMatchObject({ text: "b" });
    expect(body.nodes[0]?.state).toBe("draining");
  });

  it("H09 by a marker header or a function of one's own", async () => {
    const answer = raw("503 Service Unavailable", ["x-leaving: yes"], "bye");
    await using a = await startRawNode((socket) => socket.write(answer));
    await using b = await startNode("b");
    for (const drainMarker of [
      "header:X-Leaving=yes" as const,
      (status: number, _headers: object, text: string) => status === 503 && text === "bye",
    ]) {
      await using fleet = fleetOf([a, b], { internals: alwaysFirst, drainMarker });
      expect(await ask(fleet, { method: "POST", body: "x" })).toMatchObject({ text: "b" });
      expect(fleet.nodes[0]?.state).toBe("draining");
    }
  });

  it("H10 is not an executed request's 503 on a closing connection: no retry of a POST, one probe", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    a.respond = (_seen, response) => response.writeHead(503, { connection: "close" }).end("busy");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    expect(await ask(fleet, { method: "POST", body: "x" })).toMatchObject({
      status: 503,
      classes: ["app-status"],
    });
    await until(() => a.probeCount === 1, "the probe");
    expect(fleet.nodes[0]?.state).toBe("admitted");
    expect(b.seen).toEqual([]);
  });

  it("H11 in two segments is recognised, at every split, and the caller never sees it", async () => {
    await using b = await startNode("b");
    for (let split = 1; split < refusal.length; split += 13) {
      await using a = await startRawNode((socket) => {
        socket.write(refusal.slice(0, split), () => setTimeout(() => socket.end(refusal.slice(split)), 2));
        socket.setNoDelay(true);
      });
      await using fleet = fleetOf([a, b], { internals: alwaysFirst, health: false });
      expect(await ask(fleet, { method: "POST", body: "x" })).toMatchObject({ text: "b" });
    }
  });

  it("H11 cut short proves nothing: a POST is not repeated", async () => {
    await using a = await startRawNode((socket) => socket.end(refusal.slice(0, -5)));
    await using b = await startNode("b");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    await failure(ask(fleet, { method: "POST", body: "x" }));
    expect(b.seen).toEqual([]);
    expect(await ask(fleet)).toMatchObject({ text: "b" });
  });

  it("H12 is not looked for in a 503 with a long or unknown length: it is passed on before its body", async () => {
    for (const headers of ["content-length: 600", "transfer-encoding: chunked"]) {
      await using a = await startRawNode((socket) => {
        socket.write(
          `HTTP/1.1 503 Nope\r\ncontent-type: application/json\r\nconnection: close\r\n${headers}\r\n\r\n`,
        );
      });
      await using fleet = fleetOf([a]);
      const response = await fleet.request({ method: "POST", path: "/", body: "x" });
      expect(response.statusCode).toBe(503);
      response.body.on("error", () => undefined).destroy();
      await fleet.destroy();
    }
  });

  it("H13 is not a small 503 of the application: status, headers and all bytes once, at the reader's pace", async () => {
    const text = JSON.stringify({ why: "x".repeat(400) });
    await using a = await startRawNode((socket) => {
      socket.write(
        raw("503 Closed", ["content-type: application/json", "x-mine: 1", "connection: close"], text),
      );
    });
    await using fleet = fleetOf([a]);
    const response = await fleet.request({ method: "POST", path: "/", body: "x", highWaterMark: 1 });
    expect(response).toMatchObject({ statusCode: 503, statusText: "Closed", headers: { "x-mine": "1" } });
    expect(await response.body.text()).toBe(text);
    expect(fleet.nodes).toMatchObject([{ state: "admitted", inflight: 0 }]);
  });

  it("H43 of one of three costs none of 1000 calls", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    await using c = await startNode("c");
    await using fleet = fleetOf([a, b, c]);
    let left = 1_000;
    const statuses: number[] = [];
    const worker = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        if (left === 700) a.draining = true;
        statuses.push((await ask(fleet, { method: "POST", body: "x" })).status);
      }
    };
    await Promise.all(Array.from({ length: 50 }, worker));
    expect(statuses).toHaveLength(1_000);
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(a.refusedCount).toBeLessThanOrEqual(60);
  });

  it("H44 is over when the node's health says 200: it gets traffic again", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    a.draining = true;
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    await ask(fleet);
    expect(fleet.nodes[0]?.state).toBe("draining");
    a.draining = false;
    await until(() => fleet.nodes[0]?.state === "admitted", "the return");
    expect(await ask(fleet)).toMatchObject({ text: "a" });
  });

  it("H54 lets go of the node's idle connections, so that none is used again", async () => {
    await using a = await startNode("a");
    await using fleet = fleetOf([a], { health: false, retry: { waitForNodeMs: 0, maxAttempts: 1 } });
    await Promise.all(Array.from({ length: 5 }, () => ask(fleet)));
    expect(a.sockets.size).toBeGreaterThanOrEqual(5);
    a.draining = true;
    expect((await ask(fleet)).status).toBe(503);
    await until(() => a.sockets.size === 0, "A's sockets");
  });

  it("H54 hundreds of times leaks no socket", async () => {
    await using a = await startNode("a");
    await using b = await startNode("b");
    a.draining = true;
    // A load-balanced address is never set aside, so A goes on refusing.
    const endpoints = [{ url: a.url, loadBalanced: true }, { url: b.url }];
    await using fleet = fleetOf([], { endpoints, retry: { budget: false } });
    for (let round = 0; round < 20; round += 1) {
      const calls = Array.from({ length: 50 }, () => ask(fleet, { method: "POST", body: "x" }));
      expect(new Set((await Promise.all(calls)).map(({ text }) => text))).toEqual(new Set(["b"]));
    }
    expect(a.refusedCount).toBeGreaterThan(200);
    await until(() => a.sockets.size === 0, "A's sockets");
    expect(fleet.nodes.map(({ inflight }) => inflight)).toEqual([0, 0]);
  });

  it("H56 after a 103 is recognised", async () => {
    await using a = await startRawNode((socket) => {
      socket.end(`HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n${refusal}`);
    });
    await using b = await startNode("b");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    expect(await ask(fleet, { method: "POST", body: "x" })).toMatchObject({ text: "b" });
  });

  it.each([
    ["HEAD", "200 OK", ["content-type: application/json"]],
    ["GET", "204 No Content", []],
    ["GET", "304 Not Modified", []],
  ])("H57 %s with %s neither waits for a body nor hangs", async (method, status, headers) => {
    await using a = await startRawNode((socket) => {
      socket.write(`HTTP/1.1 ${status}\r\n${headers.map((line) => `${line}\r\n`).join("")}\r\n`);
    });
    await using fleet = fleetOf([a]);
    const answer = await ask(fleet, { method });
    expect(answer).toMatchObject({ status: Number(status.slice(0, 3)), text: "" });
  });

  it("H57 of a HEAD has no body to prove it: tried elsewhere as any idempotent 503", async () => {
    await using a = await startRawNode((socket) =>
      socket.end(refusal.slice(0, refusal.indexOf("\r\n\r\n") + 4)),
    );
    await using b = await startNode("b");
    await using fleet = fleetOf([a, b], { internals: alwaysFirst });
    expect(await ask(fleet, { method: "HEAD" })).toMatchObject({
      status: 200,
      classes: ["app-status", "answered"],
    });
  });
});
