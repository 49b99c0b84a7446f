// How answers reach their callers.
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { holdSocketTimeouts, holdTime } from "./support/held-time.ts";
import { openSocket, received } from "./support/open-socket.ts";
import { rawCall } from "./support/raw-call.ts";
import { bodiless, openTestRouter, tokens } from "./support/router.ts";
import { jsonAnswer, ScriptedBackend, willing } from "./support/scripted-backend.ts";
import { watchSockets } from "./support/watched-sockets.ts";

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
      // The moment in which the router discards what comes is over when the test says.
      holdTime();
      for (let round = 0; round < 5; round += 1) {
        const socket = await openSocket(router.port, { allowHalfOpen: true });
        const errors: Error[] = [];
        socket.on("error", (error) => errors.push(error));
        const text = received(socket);
        const closed = once(socket, "close");
        socket.write("POST /v1/executions HTTP/1.1\r\nContent-Length: 32768\r\n\r\n");
        if (isLate) await text;
        // A write after the router's reset fails, as the next one would.
        for (let part = 0; part < 4; part += 1) {
          socket.write("x".repeat(8_192));
          await wait(5);
        }
        expect(await text).toBe(unauthorized);
        socket.end();
        await closed;
        expect(errors).toEqual([]);
      }
    },
  );

  it("ends our side at once, and the connection 100 ms later, though the caller keeps its own open", async () => {
    await using router = await openTestRouter([await ScriptedBackend.open()]);
    holdTime();
    const socket = await openSocket(router.port, { allowHalfOpen: true });
    const text = received(socket);
    socket.write(bodiless("GET", "/", "x"));
    expect(await text).toBe(unauthorized);
    await until("the moment after it", () => vi.getTimerCount() === 1);
    vi.advanceTimersByTime(99);
    await wait(5);
    expect(router.router.counts().connections).toBe(1);
    vi.advanceTimersByTime(1);
    await until("the end", () => router.router.counts().connections === 0);
    socket.destroy();
  });

  it("is followed by at most 64 KiB that are thrown away", async () => {
    // The moment for it does not end.
    holdTime();
    await using router = await openTestRouter([await ScriptedBackend.open()]);
    const socket = await openSocket(router.port, { allowHalfOpen: true });
    socket.on("error", () => undefined);
    const text = received(socket);
    socket.write(bodiless("GET", "/", "x"));
    await text;
    const feed = setInterval(() => socket.destroyed || socket.write("x".repeat(16_384)), 1);
    await until("the end", () => router.router.counts().connections === 0);
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
    const timeouts = holdSocketTimeouts();
    await router.submit("run-1");
    const socket = await openSocket(router.port);
    socket.on("error", () => undefined).pause();
    socket.write(bodiless("GET", "/v1/executions/run-1"));
    await until("the answer", () => backend.calls.length === 3 && router.router.counts().running === 0);
    await until("a wait for the caller", () => timeouts.expire(500) === 1);
    await until("the end", () => router.router.counts().connections === 0);
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
    const slow = await openSocket(router.port);
    slow.on("error", () => undefined).pause();
    slow.write(bodiless("GET", "/v1/executions/run-1"));
    await until("the answer", () => backend.calls.length === 3 && router.router.counts().running === 0);
    expect((await router.read("/v1/executions/run-1"))?.status).toBe(503);
    slow.destroy();
    await until("the end", () => router.router.counts().connections === 0);
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
    const { made } = watchSockets();
    const first = router.read("/v1/executions/run-1");
    await until("the first answer but for its end", () =>
      made.some(({ remotePort, bytesRead }) => remotePort === backend.port && bytesRead > record.length),
    );
    const second = await router.read("/v1/executions/run-1");
    held.resolve();
    expect([second?.status, (await first)?.status]).toEqual([503, 200]);
    expect((await router.read("/v1/executions/run-1"))?.status).toBe(200);
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
