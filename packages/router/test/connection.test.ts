import { describe, expect, it, vi } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { holdTime } from "./support/held-time.ts";
import { openSocket, received } from "./support/open-socket.ts";
import { rawCall } from "./support/raw-call.ts";
import { bodiless, openTestRouter, submission, tokens } from "./support/router.ts";
import { type Answerer, jsonAnswer, ScriptedBackend, willing } from "./support/scripted-backend.ts";
import { watchSockets } from "./support/watched-sockets.ts";

describe("a request", () => {
  it("may come byte by byte", async () => {
    await using router = await openTestRouter([await ScriptedBackend.open()]);
    const socket = await openSocket(router.port);
    const text = received(socket);
    for (const byte of Buffer.from(submission("run-1"))) {
      socket.write(Buffer.of(byte));
      await new Promise((next) => setImmediate(next));
    }
    expect(await text).toMatch(/^HTTP\/1\.1 202 /);
  });

  it("is the only one: what follows it is never read as another", async () => {
    await using backend = await ScriptedBackend.open();
    await using router = await openTestRouter([backend]);
    const answer = await rawCall(router.port, submission("run-1") + submission("run-2"));
    expect(answer?.status).toBe(202);
    expect(backend.calls.filter((call) => call.startsWith("POST"))).toHaveLength(1);
    expect(await router.ledger.lookup("run-2")).toBeUndefined();
  });

  it("may be half-closed behind its end", async () => {
    await using router = await openTestRouter([await ScriptedBackend.open()]);
    expect((await rawCall(router.port, submission("run-1"), { halfClose: true }))?.status).toBe(202);
  });

  it.each([
    ["whose body is cut", submission("run-1").slice(0, -1)],
    ["whose head is cut", "GET /v1/executions/x HTTP/1.1\r\nAuthorization: Bearer x\r\n"],
    ["without a byte", ""],
  ])("%s ends without an answer or a claim", async (_state, request) => {
    await using backend = await ScriptedBackend.open();
    await using router = await openTestRouter([backend]);
    expect(await rawCall(router.port, request, { halfClose: true })).toBeUndefined();
    expect([backend.calls, await router.ledger.count()]).toEqual([[], 0]);
  });

  it.each([
    ["that never comes", ""],
    ["whose head stops", "GET /v1/executions/x HTTP/1.1\r\n"],
    ["whose body stops", submission("run-1").slice(0, -1)],
  ])("%s is not waited for", async (_state, request) => {
    await using router = await openTestRouter([await ScriptedBackend.open()], {
      limits: { operationMs: 200 },
    });
    const socket = await openSocket(router.port);
    const text = received(socket);
    socket.write(request);
    expect(["", "read ECONNRESET"]).toContain(await text);
    expect(await router.ledger.count()).toBe(0);
  });

  it("has no longer for its head than for all of it", async () => {
    await using router = await openTestRouter([await ScriptedBackend.open()], {
      limits: { headMs: 5_000, requestMs: 300 },
    });
    holdTime();
    const socket = await openSocket(router.port);
    const text = received(socket);
    socket.write("GET /v1/executions/x HTTP/1.1\r\n");
    await until("the connection", () => router.router.counts().connections === 1);
    vi.advanceTimersByTime(299);
    expect(router.router.counts().connections).toBe(1);
    vi.advanceTimersByTime(1);
    await until("the end", () => router.router.counts().connections === 0);
    expect(["", "read ECONNRESET"]).toContain(await text);
  });

  it("may take longer than one wait, as long as bytes come", async () => {
    holdTime();
    const { accepted } = watchSockets();
    await using router = await openTestRouter([await ScriptedBackend.open()], {
      limits: { operationMs: 10_000 },
    });
    const socket = await openSocket(router.port);
    const text = received(socket);
    const bytes = Buffer.from(submission("run-1"));
    const size = Math.ceil(bytes.length / 6);
    for (let at = 0; at < bytes.length; at += size) {
      const end = Math.min(at + size, bytes.length);
      socket.write(bytes.subarray(at, end));
      await until("the piece", () => accepted[0]?.bytesRead === end);
      // All but the last find a router that waits for more.
      if (end < bytes.length) vi.advanceTimersByTime(9_900);
    }
    expect(await text).toMatch(/^HTTP\/1\.1 202 /);
  });

  it("without a token that is good has its refusal while the list of dispatchers is still looked for", async () => {
    const never = new Promise<readonly string[]>(() => undefined);
    await using router = await openTestRouter([], { backends: { origins: () => never } });
    expect((await router.read("/v1/executions/run-1", "x"))?.status).toBe(401);
    expect((await router.read("/v1/executions/run-1", tokens.capability))?.status).toBe(401);
  });

  it("waits for its turn where too many run", async () => {
    // Those that hold up others are silent for less than two seconds.
    holdTime();
    const held = Promise.withResolvers<void>();
    const answer: Answerer = async (request, socket) => {
      if (request.method === "POST") await held.promise;
      return willing(request, socket);
    };
    await using one = await ScriptedBackend.open(answer);
    await using other = await ScriptedBackend.open(answer);
    await using router = await openTestRouter([one, other], { limits: { runningCount: 2 } });
    const answers = Array.from({ length: 5 }, (_, at) =>
      router.submit(`run-${at}`, `X-Celln-Backend: ${(at % 2 === 0 ? one : other).origin}\r\n`),
    );
    await until("three that wait", () => router.router.counts().waiting === 3);
    expect(router.router.counts()).toEqual({ connections: 5, running: 2, waiting: 3 });
    expect(await router.ledger.count()).toBe(2);
    held.resolve();
    expect((await Promise.all(answers)).map((answer) => answer?.status)).toEqual([202, 202, 202, 202, 202]);
  });
});

it("connections over the limit are closed at once, and those below go on", async () => {
  await using router = await openTestRouter([await ScriptedBackend.open()], {
    limits: { connectionCount: 2 },
  });
  const [one, two] = [await openSocket(router.port), await openSocket(router.port)];
  await until("two connections", () => router.router.counts().connections === 2);
  const third = await openSocket(router.port);
  expect(["", "read ECONNRESET"]).toContain(await received(third));
  expect(router.events).toContainEqual({ kind: "dropped" });
  const text = received(one);
  one.write(bodiless("GET", "/v1/executions/x"));
  expect(await text).toMatch(/unknown execution/);
  two.destroy();
});

describe("a dispatcher", () => {
  it("whose name is never found, or that never accepts, is given up after a while", async () => {
    await using router = await openTestRouter([], {
      backends: { origins: async () => ["http://cells.test:1"] },
      lookup: () => undefined,
      limits: { connectMs: 200 },
    });
    expect((await router.submit("run-1"))?.status).toBe(503);
    expect(router.events).toContainEqual(
      expect.objectContaining({
        kind: "backend",
        problem: expect.stringMatching(/did not accept a connection within 200 ms/),
      }),
    );
  });

  it("may have a name, of which the first address alone is tried", async () => {
    await using backend = await ScriptedBackend.open();
    const asked: string[] = [];
    await using router = await openTestRouter([], {
      backends: { origins: async () => [backend.origin.replace("127.0.0.1", "cells.test")] },
      lookup: (name, _options, callback) => {
        asked.push(name);
        callback(null, "127.0.0.1", 4);
      },
    });
    expect((await router.submit("run-1"))?.status).toBe(202);
    expect(asked).toEqual(["cells.test"]);
  });

  it("whose health takes more than 64 KiB to tell is not healthy", async () => {
    await using backend = await ScriptedBackend.open((request, socket) =>
      request.path === "/v1/health"
        ? jsonAnswer(200, { ok: true, kvm: true, more: "x".repeat(65_536) })
        : willing(request, socket),
    );
    await using router = await openTestRouter([backend]);
    expect((await router.submit("run-1"))?.status).toBe(503);
    expect(await router.ledger.count()).toBe(0);
  });

  it("that an origin cannot name is asked for nothing", async () => {
    await using router = await openTestRouter([], { backends: { origins: async () => ["http://n:port"] } });
    expect((await router.submit("run-1"))?.status).toBe(503);
  });
});
