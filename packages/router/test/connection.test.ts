import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { RunningLimit } from "../src/server/running-limit.ts";
import { rawCall } from "./support/raw-call.ts";
import { bodiless, openTestRouter, submission, tokens } from "./support/router.ts";
import { jsonAnswer, ScriptedBackend, willing } from "./support/scripted-backend.ts";
import { until } from "./support/until.ts";

async function open(port: number, options: { allowHalfOpen?: boolean } = {}): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true, ...options });
  await once(socket, "connect");
  return socket;
}

/** All that comes until the router's end, or the text of an error. */
function received(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
    });
    socket.on("end", () => resolve(text));
    socket.on("error", (error) => resolve(error.message));
  });
}

const unauthorized =
  'HTTP/1.1 401 OK\r\nContent-Type: application/json\r\nContent-Length: 24\r\nConnection: close\r\n\r\n{"error":"unauthorized"}';

describe("an answer", () => {
  it("of the router's own is written to the byte", async () => {
    await using router = await openTestRouter([await ScriptedBackend.open()]);
    expect((await router.read("/v1/health", "x"))?.text).toBe(unauthorized);
  });

  it.each([
    ["with the head", false],
    ["once the answer is there", true],
  ])(
    "survives 32 KiB that nobody asked for, sent %s, and the connection is not reset",
    async (_when, isLate) => {
      await using router = await openTestRouter([await ScriptedBackend.open()]);
      for (let round = 0; round < 5; round += 1) {
        const socket = await open(router.port, { allowHalfOpen: true });
        const errors: Error[] = [];
        socket.on("error", (error) => errors.push(error));
        const text = received(socket);
        const closed = once(socket, "close");
        socket.write("POST /v1/executions HTTP/1.1\r\nContent-Length: 32768\r\n\r\n");
        if (isLate) await text;
        // A write after the router's reset fails, as the next one would.
        for (let part = 0; part < 4; part += 1) {
          socket.write("x".repeat(8_192));
          await new Promise((next) => setTimeout(next, 5));
        }
        expect(await text).toBe(unauthorized);
        socket.end();
        await closed;
        expect(errors).toEqual([]);
      }
    },
  );

  it("ends our side at once, and the connection within moments, though the caller keeps its own open", async () => {
    await using router = await openTestRouter([await ScriptedBackend.open()]);
    const socket = await open(router.port, { allowHalfOpen: true });
    const text = received(socket);
    const startedMs = performance.now();
    socket.write(bodiless("GET", "/", "x"));
    expect(await text).toBe(unauthorized);
    expect(performance.now() - startedMs).toBeLessThan(90);
    await until("the end", () => router.router.counts().connections === 0, 1_000);
    socket.destroy();
  });

  it("is followed by at most 64 KiB that are thrown away", async () => {
    await using router = await openTestRouter([await ScriptedBackend.open()]);
    const socket = await open(router.port, { allowHalfOpen: true });
    socket.on("error", () => undefined);
    const text = received(socket);
    socket.write(bodiless("GET", "/", "x"));
    await text;
    const feed = setInterval(() => socket.destroyed || socket.write("x".repeat(16_384)), 1);
    await until("the end", () => router.router.counts().connections === 0, 1_000);
    clearInterval(feed);
    socket.destroy();
  });

  it("of 16 MiB comes through", async () => {
    const record = JSON.stringify({ output: "x".repeat(16_000_000) });
    await using backend = await ScriptedBackend.open((request, socket) =>
      request.method === "GET" && request.path !== "/v1/health"
        ? jsonAnswer(200, record)
        : willing(request, socket),
    );
    await using router = await openTestRouter([backend]);
    await router.submit("run-1");
    expect((await router.read("/v1/executions/run-1"))?.body.length).toBe(record.length);
  });

  it("that its caller does not take is given up", async () => {
    const record = JSON.stringify({ output: "x".repeat(16_000_000) });
    await using backend = await ScriptedBackend.open((request, socket) =>
      request.path === "/v1/executions/run-1" ? jsonAnswer(200, record) : willing(request, socket),
    );
    await using router = await openTestRouter([backend], { limits: { operationMs: 500 } });
    await router.submit("run-1");
    const socket = await open(router.port);
    socket.on("error", () => undefined).pause();
    socket.write(bodiless("GET", "/v1/executions/run-1"));
    await until("the answer", () => backend.calls.length === 3 && router.router.counts().running === 0);
    await until("the end", () => router.router.counts().connections === 0, 3_000);
    expect(router.events.at(-1)).toMatchObject({ kind: "request", route: "read", status: undefined });
    socket.destroy();
  });

  it("that its caller has not taken yet counts as held: others get none that is large", async () => {
    const record = JSON.stringify({ output: "x".repeat(16_000_000) });
    await using backend = await ScriptedBackend.open((request, socket) =>
      request.path === "/v1/executions/run-1" ? jsonAnswer(200, record) : willing(request, socket),
    );
    await using router = await openTestRouter([backend], { limits: { totalAnswerBytes: 20_000_000 } });
    await router.submit("run-1");
    const slow = await open(router.port);
    slow.on("error", () => undefined).pause();
    slow.write(bodiless("GET", "/v1/executions/run-1"));
    await until("the answer", () => backend.calls.length === 3 && router.router.counts().running === 0);
    expect((await router.read("/v1/executions/run-1"))?.status).toBe(503);
    slow.destroy();
    await until("the end", () => router.router.counts().connections === 0, 3_000);
    expect((await router.read("/v1/executions/run-1"))?.status).toBe(200);
  });

  it("of many large ones at once that memory is not meant for counts as lost", async () => {
    const held = Promise.withResolvers<void>();
    const record = JSON.stringify({ output: "x".repeat(700_000) });
    await using backend = await ScriptedBackend.open(async (request, socket) => {
      if (request.method !== "GET" || request.path === "/v1/health") return willing(request, socket);
      const answer = jsonAnswer(200, record);
      socket.write(answer.slice(0, -1));
      await held.promise;
      return "}";
    });
    await using router = await openTestRouter([backend], { limits: { totalAnswerBytes: 1_000_000 } });
    await router.submit("run-1");
    const first = router.read("/v1/executions/run-1");
    await until("the first read", () => backend.calls.length === 3);
    await new Promise((next) => setTimeout(next, 100));
    const second = await router.read("/v1/executions/run-1");
    held.resolve();
    expect([second?.status, (await first)?.status]).toEqual([503, 200]);
    expect((await router.read("/v1/executions/run-1"))?.status).toBe(200);
  });
});

describe("a request", () => {
  it("may come byte by byte", async () => {
    await using router = await openTestRouter([await ScriptedBackend.open()]);
    const socket = await open(router.port);
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
    const socket = await open(router.port);
    const text = received(socket);
    socket.write(request);
    expect(["", "read ECONNRESET"]).toContain(await text);
    expect(await router.ledger.count()).toBe(0);
  });

  it("may take longer than one wait, as long as bytes come", async () => {
    await using router = await openTestRouter([await ScriptedBackend.open()], {
      limits: { operationMs: 200 },
    });
    const socket = await open(router.port);
    const text = received(socket);
    const bytes = Buffer.from(submission("run-1"));
    const size = Math.ceil(bytes.length / 6);
    for (let at = 0; at < bytes.length; at += size) {
      socket.write(bytes.subarray(at, at + size));
      await new Promise((next) => setTimeout(next, 60));
    }
    expect(await text).toMatch(/^HTTP\/1\.1 202 /);
  });

  it("waits for its turn where too many run", async () => {
    const held = Promise.withResolvers<void>();
    await using backend = await ScriptedBackend.open(async (request, socket) => {
      if (request.method === "POST") await held.promise;
      return willing(request, socket);
    });
    await using router = await openTestRouter([backend], { limits: { runningCount: 2 } });
    const answers = Array.from({ length: 5 }, (_, at) => router.submit(`run-${at}`));
    await until("three that wait", () => router.router.counts().waiting === 3);
    expect(router.router.counts()).toEqual({ connections: 5, running: 2, waiting: 3 });
    expect(await router.ledger.count()).toBe(2);
    held.resolve();
    expect((await Promise.all(answers)).map((answer) => answer?.status)).toEqual([202, 202, 202, 202, 202]);
  });
});

it("turns go to those who came first", async () => {
  const limit = new RunningLimit(1);
  const came: string[] = [];
  const enter = async (name: string) => {
    const leave = await limit.enter();
    came.push(name);
    leave();
  };
  const leave = await limit.enter();
  const all = ["one", "two", "three"].map(enter);
  leave();
  await Promise.all(all);
  expect(came).toEqual(["one", "two", "three"]);
});

it("connections over the limit are closed at once, and those below go on", async () => {
  await using router = await openTestRouter([await ScriptedBackend.open()], {
    limits: { connectionCount: 2 },
  });
  const [one, two] = [await open(router.port), await open(router.port)];
  await until("two connections", () => router.router.counts().connections === 2);
  const third = await open(router.port);
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
    const startedMs = performance.now();
    expect((await router.submit("run-1"))?.status).toBe(503);
    expect(performance.now() - startedMs).toBeLessThan(2_000);
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
    expect(asked).toEqual(["cells.test", "cells.test"]);
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

it("the tokens stand in no answer", async () => {
  await using backend = await ScriptedBackend.open();
  await using router = await openTestRouter([backend]);
  const answers = [
    await router.submit("run-1"),
    await router.read("/v1/capabilities"),
    await router.read("/v1/executions/run-1", tokens.backend),
    await rawCall(router.port, `GET /${tokens.client} HTTP/1.1\r\n${tokens.client}\r\n\r\n`),
  ];
  for (const answer of answers) expect(answer?.text).not.toMatch(/client-client|backend-backend|discovery-/);
});
