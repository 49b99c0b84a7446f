// What one caller or one dispatcher may hold in all, however steadily its bytes come.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, inject, it, vi } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { holdSocketTimeouts, holdTime } from "./support/held-time.ts";
import { bodiless, openTestRouter, submission } from "./support/router.ts";
import { type Answerer, jsonAnswer, ScriptedBackend, willing } from "./support/scripted-backend.ts";
import { watchSockets } from "./support/watched-sockets.ts";

const uncertain = '{"error":"submission outcome unknown; owner retained; POST will not be replayed"}';
const noOwnership = '{"error":"ownership unavailable; retry same request without changing id"}';

/** A byte every 30 ms, for ever. */
function drip(socket: Socket): "hang" {
  const timer = setInterval(() => socket.write("a"), 30);
  socket.once("close", () => clearInterval(timer));
  return "hang";
}

/** Willing, but for one call. */
const dripping =
  (call: string): Answerer =>
  (request, socket) =>
    `${request.method} ${request.path}` === call ? drip(socket) : willing(request, socket);
const hanging =
  (call: string): Answerer =>
  (request, socket) =>
    `${request.method} ${request.path}` === call ? "hang" : willing(request, socket);

/** How much came from a backend. */
const bytesFrom = ({ port }: ScriptedBackend, sockets: readonly Socket[]) =>
  sockets.reduce((sum, { remotePort, bytesRead }) => sum + (remotePort === port ? bytesRead : 0), 0);
/** What is ready to happen has happened. */
const turns = async () => {
  for (let count = 0; count < 3; count += 1) await new Promise((next) => setImmediate(next));
};

const pinTo = ({ origin }: ScriptedBackend) => `X-Celln-Backend: ${origin}\r\n`;

describe("a dispatcher that answers byte by byte", () => {
  it("is not healthy, and new work goes elsewhere", async () => {
    holdTime();
    const { made } = watchSockets();
    await using slow = await ScriptedBackend.open(dripping("GET /v1/health"));
    await using backend = await ScriptedBackend.open();
    await using router = await openTestRouter([slow, backend], {
      limits: { healthMs: 300 },
      placement: async ({ backends, health }) => {
        for (const origin of backends) if ((await health(origin)).healthy) return origin;
        return undefined;
      },
    });
    const answer = router.submit("run-1");
    await until("some bytes", () => bytesFrom(slow, made) > 2);
    vi.advanceTimersByTime(300);
    expect((await answer)?.status).toBe(202);
    expect([slow.calls, backend.calls.length]).toEqual([["GET /v1/health"], 2]);
    expect(router.events).toContainEqual(
      expect.objectContaining({ call: "health", problem: expect.stringMatching(/not done within 300 ms/) }),
    );
  });

  it("leaves a submission's outcome unknown", async () => {
    holdTime();
    const { made } = watchSockets();
    await using backend = await ScriptedBackend.open(dripping("POST /v1/executions"));
    await using router = await openTestRouter([backend], { limits: { exchangeMs: 300 } });
    const answer = router.submit("run-1");
    await until("the POST", () => backend.calls.length === 2);
    await until("some bytes", () => bytesFrom(backend, made.slice(-1)) > 2);
    vi.advanceTimersByTime(300);
    expect((await answer)?.body).toBe(uncertain);
    expect(router.events).toContainEqual(
      expect.objectContaining({ call: "submit", problem: expect.stringMatching(/not done within 300 ms/) }),
    );
  });
});

it("a dispatcher that answers nothing is given up after one wait", async () => {
  const timeouts = holdSocketTimeouts();
  await using backend = await ScriptedBackend.open(hanging("POST /v1/executions"));
  await using router = await openTestRouter([backend], { limits: { operationMs: 150 } });
  const answer = router.submit("run-1");
  await until("the POST", () => backend.calls.length === 2);
  expect(timeouts.expire(150)).toBe(1);
  expect((await answer)?.body).toBe(uncertain);
  expect(router.events).toContainEqual(
    expect.objectContaining({ call: "submit", problem: expect.stringMatching(/moved no byte for 150 ms/) }),
  );
});

it("submissions that wait for their dispatcher hold up no read and no capabilities", async () => {
  // Less than the two seconds behind which nobody waits for one that is silent.
  holdTime();
  await using silent = await ScriptedBackend.open(hanging("POST /v1/executions"));
  await using backend = await ScriptedBackend.open();
  await using router = await openTestRouter([silent, backend], { limits: { runningCount: 1 } });
  await router.ledger.claim("run-1", "x", async () => backend.origin);
  const waiting = [router.submit("run-2", pinTo(silent)), router.submit("run-3", pinTo(silent))];
  await until("one that waits for its turn", () => router.router.counts().waiting === 1);
  expect((await router.read("/v1/executions/run-1"))?.status).toBe(200);
  expect((await router.read("/v1/capabilities"))?.status).toBe(200);
  expect(router.router.counts()).toMatchObject({ running: 1, waiting: 1 });
  await router.router.stop({ signal: AbortSignal.abort() });
  await Promise.all(waiting);
});

describe("a dispatcher that is silent while half of the room waits for it", () => {
  it("is given no new id: neither by a pin nor otherwise", async () => {
    holdTime();
    await using silent = await ScriptedBackend.open((request, socket) =>
      request.path === "/v1/executions/run-9" ? undefined : hanging("POST /v1/executions")(request, socket),
    );
    await using backend = await ScriptedBackend.open();
    await using router = await openTestRouter([silent, backend], {
      limits: { runningCount: 4 },
    });
    await router.ledger.claim("run-9", "x", async () => silent.origin);
    const waiting = ["run-1", "run-2"].map((id) => router.submit(id, pinTo(silent)));
    await until("two that wait", () => silent.calls.length === 2);
    // Two seconds of silence are the rule, and a connection that is closed is no answer.
    vi.advanceTimersByTime(1_000);
    expect((await router.read("/v1/executions/run-9"))?.status).toBe(503);
    vi.advanceTimersByTime(1_000);
    expect((await router.submit("run-3", pinTo(silent)))?.body).toBe(noOwnership);
    expect(await router.ledger.lookup("run-3")).toBeUndefined();
    for (const id of ["run-3", "run-4", "run-5", "run-6"])
      expect((await router.submit(id))?.status).toBe(202);
    expect([silent.calls.length, backend.calls.length]).toEqual([3, 8]);
    await router.router.stop({ signal: AbortSignal.abort() });
    await Promise.all(waiting);
  });

  it("is not probed by more callers, though all who wait share one probe", async () => {
    holdTime();
    await using silent = await ScriptedBackend.open(hanging("GET /v1/health"));
    await using backend = await ScriptedBackend.open();
    await using router = await openTestRouter([silent, backend], {
      limits: { runningCount: 4, healthMs: 20_000 },
      placement: async ({ backends, health }) => {
        for (const origin of backends) if ((await health(origin)).healthy) return origin;
        return undefined;
      },
    });
    const waiting = ["run-1", "run-2"].map((id) => router.submit(id));
    await until("two that wait", () => router.router.counts().running === 2 && silent.calls.length === 1);
    vi.advanceTimersByTime(2_000);
    expect((await router.submit("run-3"))?.status).toBe(202);
    expect(router.router.counts().running).toBe(2);
    await router.router.stop({ signal: AbortSignal.abort() });
    await Promise.all(waiting);
  });
});

describe("a burst to one dispatcher", () => {
  it("that answers nothing takes half of the room, at once, and the others of it wait for two seconds", async () => {
    holdTime();
    await using silent = await ScriptedBackend.open(hanging("POST /v1/executions"));
    await using backend = await ScriptedBackend.open();
    await using router = await openTestRouter([silent, backend], { limits: { runningCount: 4 } });
    const burst = Array.from({ length: 10 }, (_, at) => router.submit(`run-${at}`, pinTo(silent)));
    await until("two that run", () => silent.calls.length === 2 && router.router.counts().waiting === 8);
    // No time passes for that.
    expect((await router.submit("good", pinTo(backend)))?.status).toBe(202);
    vi.advanceTimersByTime(1_999);
    expect(router.router.counts().waiting).toBe(8);
    vi.advanceTimersByTime(1);
    await until("the end of those that wait", () => router.router.counts().waiting === 0);
    // Only the two that were sent are bound.
    expect(await router.ledger.count()).toBe(3);
    await router.router.stop({ signal: AbortSignal.abort() });
    const bodies = (await Promise.all(burst)).map((answer) => answer?.body);
    expect(bodies.filter((body) => body === uncertain)).toHaveLength(2);
    expect(bodies.filter((body) => body === noOwnership)).toHaveLength(8);
  });

  it("of reads takes half of the room, too, and all are answered in their turn", async () => {
    holdTime();
    const held = Promise.withResolvers<void>();
    await using slow = await ScriptedBackend.open(async (request, socket) => {
      await held.promise;
      return willing(request, socket);
    });
    await using backend = await ScriptedBackend.open();
    await using router = await openTestRouter([slow, backend], { limits: { runningCount: 4 } });
    await router.ledger.claim("slow", "x", async () => slow.origin);
    await router.ledger.claim("good", "x", async () => backend.origin);
    const burst = Array.from({ length: 10 }, () => router.read("/v1/executions/slow"));
    await until("two that run", () => slow.calls.length === 2 && router.router.counts().waiting === 8);
    expect((await router.read("/v1/executions/good"))?.status).toBe(200);
    held.resolve();
    expect((await Promise.all(burst)).map((answer) => answer?.status)).toEqual(Array(10).fill(200));
    await until("nothing that runs", () => router.router.counts().running === 0);
    expect(router.router.counts().waiting).toBe(0);
  });

  it.runIf(inject("size") === "long")(
    "of new ids whose probe hangs leaves room for those that are pinned elsewhere",
    async () => {
      holdTime();
      await using silent = await ScriptedBackend.open(hanging("GET /v1/health"));
      await using backend = await ScriptedBackend.open();
      await using router = await openTestRouter([silent, backend], {
        limits: { runningCount: 4 },
        placement: async ({ backends, health }) => {
          for (const origin of backends) if ((await health(origin)).healthy) return origin;
          return undefined;
        },
      });
      const burst = Array.from({ length: 10 }, (_, at) => router.submit(`run-${at}`));
      await until("two that run", () => router.router.counts().waiting === 8);
      expect((await router.submit("good", pinTo(backend)))?.status).toBe(202);
      // Silent for two seconds, it is passed by.
      const posted = () => backend.calls.filter((call) => call === "POST /v1/executions").length;
      vi.advanceTimersByTime(2_000);
      await until("those that went on", () => posted() === 9);
      await router.router.stop({ signal: AbortSignal.abort() });
      await Promise.all(burst);
    },
  );
});

describe("a caller", () => {
  it.each([
    ["head", "GET /v1/executions/x HTTP/1.1\r\nX: ", { headMs: 300 }],
    ["body", submission("run-1").slice(0, -15), { requestMs: 300 }],
  ])("that sends its %s byte by byte is cut off", async (_part, begin, limits) => {
    holdTime();
    const { accepted } = watchSockets();
    await using router = await openTestRouter([await ScriptedBackend.open()], { limits });
    const socket = connect({ port: router.port, host: "127.0.0.1", noDelay: true });
    socket.on("error", () => undefined).resume();
    await once(socket, "connect");
    // What is still sent may be answered by a reset, which `once` would take for a failure.
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.write(begin);
    // Not enough for the body to be whole.
    for (let count = 1; count <= 3; count += 1) {
      socket.write("a");
      await until("one more byte", () => accepted[0]?.bytesRead === begin.length + count);
    }
    vi.advanceTimersByTime(299);
    await turns();
    expect(router.router.counts().connections).toBe(1);
    vi.advanceTimersByTime(1);
    await closed;
    await until("its event", () => router.events.length > 0);
    expect(router.events.at(-1)).toMatchObject({ kind: "request", status: undefined });
    expect(await router.ledger.count()).toBe(0);
  });

  it("has the time for a whole request from the begin of its connection on", async () => {
    holdTime();
    const { accepted } = watchSockets();
    await using router = await openTestRouter([await ScriptedBackend.open()], {
      limits: { headMs: 5_000, requestMs: 900 },
    });
    const socket = connect({ port: router.port, host: "127.0.0.1", noDelay: true });
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.on("error", () => undefined).resume();
    await until("the connection", () => router.router.counts().connections === 1);
    vi.advanceTimersByTime(700);
    const begin = submission("run-1").slice(0, -15);
    socket.write(begin);
    await until("all but the end", () => accepted[0]?.bytesRead === begin.length);
    await turns();
    vi.advanceTimersByTime(199);
    await turns();
    expect(router.router.counts().connections).toBe(1);
    vi.advanceTimersByTime(1);
    await closed;
    await until("its event", () => router.events.length > 0);
    expect(router.events.at(-1)).toMatchObject({ durationMs: 900 });
  });

  it("that begins a request and does not go on with it is cut off after one wait", async () => {
    await using router = await openTestRouter([await ScriptedBackend.open()], {
      // Nothing else ends it while the test runs.
      limits: { operationMs: 150, headMs: 600_000, requestMs: 600_000 },
    });
    const socket = connect({ port: router.port, host: "127.0.0.1" });
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.on("error", () => undefined).resume();
    socket.write("GET /v1/executions/x HTTP/1.1\r\n");
    await closed;
  });

  it("that is gone before its turn comes has nothing done for it", async () => {
    holdTime();
    const { accepted } = watchSockets();
    await using silent = await ScriptedBackend.open(hanging("POST /v1/executions"));
    await using backend = await ScriptedBackend.open();
    await using router = await openTestRouter([silent, backend], {
      limits: { runningCount: 1, exchangeMs: 300 },
    });
    const first = router.submit("run-1", pinTo(silent));
    await until("the POST", () => silent.calls.length === 1);
    const socket = connect({ port: router.port, host: "127.0.0.1" });
    socket.on("error", () => undefined).write(submission("run-2", pinTo(backend)));
    await until("one that waits", () => router.router.counts().waiting === 1);
    socket.resetAndDestroy();
    const theirs = accepted.filter(({ localPort }) => localPort === router.port).at(-1);
    await until("a router that knows of it", () => theirs?.destroyed);
    vi.advanceTimersByTime(300);
    expect((await first)?.body).toBe(uncertain);
    await until("the end of both", () => router.router.counts().connections === 0);
    expect(await router.ledger.lookup("run-2")).toBeUndefined();
    expect(backend.calls).toEqual([]);
  });

  it("that takes an answer a little at a time is cut off, and its memory is free again", async () => {
    holdTime();
    const record = JSON.stringify({ output: "x".repeat(16_000_000) });
    await using backend = await ScriptedBackend.open((request, socket) =>
      request.path === "/v1/executions/run-1" ? jsonAnswer(200, record) : willing(request, socket),
    );
    await using router = await openTestRouter([backend], {
      limits: { totalAnswerBytes: 20_000_000, writeMs: 600 },
    });
    await router.submit("run-1");
    const slow = connect({ port: router.port, host: "127.0.0.1" });
    slow.on("error", () => undefined).on("readable", () => undefined);
    slow.write(bodiless("GET", "/v1/executions/run-1"));
    const timer = setInterval(() => slow.read(16_384), 30);
    await until("the answer", () => backend.calls.length === 3 && router.router.counts().running === 0);
    await until("a part of it", () => slow.bytesRead > 100_000);
    vi.advanceTimersByTime(599);
    await turns();
    expect(router.router.counts().connections).toBe(1);
    vi.advanceTimersByTime(1);
    await until("the end", () => router.router.counts().connections === 0);
    clearInterval(timer);
    slow.destroy();
    expect(router.events.at(-1)).toMatchObject({ kind: "request", route: "read", status: undefined });
    expect((await router.read("/v1/executions/run-1"))?.status).toBe(200);
  });
});
