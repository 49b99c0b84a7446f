import { once } from "node:events";
import { connect } from "node:net";
import { type Claim, openMemoryLedger } from "@cellkit/ledger";
import { describe, expect, it, vi } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { createBackendList, createRouter, RouterOptionError } from "../src/index.ts";
import { holdTime } from "./support/held-time.ts";
import { rawCall } from "./support/raw-call.ts";
import { bodiless, openTestRouter, submission } from "./support/router.ts";
import { jsonAnswer, ScriptedBackend, willing } from "./support/scripted-backend.ts";

/** A backend whose POSTs are answered when the test says. */
async function heldBackend() {
  const held = Promise.withResolvers<void>();
  const backend = await ScriptedBackend.open(async (request, socket) => {
    if (request.method === "POST") await held.promise;
    return willing(request, socket);
  });
  const posted = () => until("the POST", () => backend.calls.includes("POST /v1/executions"));
  return { backend, release: held.resolve, posted };
}

describe("a router that stops", () => {
  it("accepts nothing more, and finishes what runs", async () => {
    const { backend, release, posted } = await heldBackend();
    await using _ = backend;
    await using router = await openTestRouter([backend]);
    const answer = router.submit("run-1");
    await posted();
    const stopped = router.router.stop();
    await expect(rawCall(router.port, submission("run-2"))).rejects.toMatchObject({ code: "ECONNREFUSED" });
    release();
    expect((await answer)?.status).toBe(202);
    await stopped;
    expect(router.router.stop()).toBe(stopped);
    expect(router.router.counts()).toEqual({ connections: 0, running: 0, waiting: 0 });
  });

  it("takes a request that was on its way, and ends connections that bring none", async () => {
    holdTime();
    await using backend = await ScriptedBackend.open();
    await using router = await openTestRouter([backend]);
    const [silent, late] = [connect(router.port, "127.0.0.1"), connect(router.port, "127.0.0.1")];
    await Promise.all([once(silent, "connect"), once(late, "connect")]);
    await until("two connections", () => router.router.counts().connections === 2);
    let text = "";
    late.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    silent.on("error", () => undefined);
    const ended = once(silent, "close");
    const stopped = router.router.stop();
    vi.advanceTimersByTime(499);
    late.write(submission("run-1"));
    await once(late, "end");
    expect(text).toMatch(/^HTTP\/1\.1 202 /);
    await until("the end of the one", () => router.router.counts().connections === 1);
    vi.advanceTimersByTime(1);
    await Promise.all([ended, stopped]);
  });

  it("and may not wait tells the callers of running submissions that their outcome is unknown", async () => {
    const { backend, posted } = await heldBackend();
    await using _ = backend;
    await using router = await openTestRouter([backend]);
    const answer = router.submit("run-1");
    await posted();
    const abort = new AbortController();
    const stopped = router.router.stop({ signal: abort.signal });
    abort.abort();
    expect((await answer)?.body).toMatch(/submission outcome unknown/);
    await stopped;
    expect(await router.ledger.lookup("run-1")).toMatchObject({ backend: backend.origin });
  });

  it("and may not wait neither waits for a claim that is being recorded nor sends its POST, and tells that the outcome is unknown", async () => {
    await using backend = await ScriptedBackend.open();
    const ledger = await openMemoryLedger();
    const recording = Promise.withResolvers<void>();
    const chosen = Promise.withResolvers<void>();
    const { claim } = ledger;
    await using router = await openTestRouter([backend], {
      ledger: Object.assign(ledger, {
        // The store has the record, and its answer is on the way.
        async claim(id: string, body: Uint8Array, choose: () => Promise<string>): Promise<Claim> {
          const done = await claim.call(ledger, id, body, choose);
          chosen.resolve();
          await recording.promise;
          return done;
        },
      }),
    });
    const answer = router.submit("run-1");
    await chosen.promise;
    const stopped = router.router.stop({ signal: AbortSignal.abort() });
    expect((await answer)?.body).toMatch(/submission outcome unknown/);
    recording.resolve();
    await stopped;
    expect(backend.calls).toEqual(["GET /v1/health"]);
    expect(router.events).toContainEqual({ kind: "uncertain", backend: backend.origin });
    // What a caller finds that asks another replica: the truth of what it was told.
    await using other = await openTestRouter([backend], { ledger });
    backend.answer = () => jsonAnswer(404, { error: "unknown execution" });
    expect((await other.submit("run-1"))?.body).toMatch(/recorded owner unavailable or outcome lost/);
  });

  it("and may not wait tells a caller to come again as long as no owner was chosen, and records none", async () => {
    await using backend = await ScriptedBackend.open(() => "hang");
    await using router = await openTestRouter([backend]);
    const answer = router.submit("run-1");
    await until("the probe", () => backend.calls.length === 1);
    const stopped = router.router.stop({ signal: AbortSignal.abort() });
    expect((await answer)?.body).toMatch(/retry same request without changing id/);
    await stopped;
    expect(await router.ledger.lookup("run-1")).toBeUndefined();
    expect(router.events.some(({ kind }) => kind === "uncertain")).toBe(false);
  });

  it("and may not wait records no owner that is chosen later, whatever the ledger makes of a signal", async () => {
    const ledger = await openMemoryLedger();
    const { claim } = ledger;
    const claimed = Promise.withResolvers<unknown>();
    const choosing = Promise.withResolvers<string>();
    await using backend = await ScriptedBackend.open();
    await using router = await openTestRouter([backend], {
      placement: () => choosing.promise,
      ledger: Object.assign(ledger, {
        claim(id: string, body: Uint8Array, choose: () => Promise<string>): Promise<Claim> {
          const claiming = claim.call(ledger, id, body, choose);
          claiming.then(claimed.resolve, claimed.resolve);
          return claiming;
        },
      }),
    });
    const answer = router.submit("run-1");
    await until("the request", () => router.router.counts().running === 1);
    const stopped = router.router.stop({ signal: AbortSignal.abort() });
    expect((await answer)?.body).toMatch(/retry same request without changing id/);
    choosing.resolve(backend.origin);
    await Promise.all([claimed.promise, stopped]);
    expect(await ledger.lookup("run-1")).toBeUndefined();
  });

  it("and may not wait does not wait for a ledger that looks up", async () => {
    await using backend = await ScriptedBackend.open();
    const ledger = await openMemoryLedger();
    await using router = await openTestRouter([backend], {
      ledger: Object.assign(ledger, { lookup: () => new Promise<never>(() => undefined) }),
    });
    const answer = router.read("/v1/executions/run-1");
    await until("the request", () => router.router.counts().running === 1);
    const stopped = router.router.stop({ signal: AbortSignal.abort() });
    expect((await answer)?.body).toBe('{"error":"execution ownership unavailable"}');
    await stopped;
    expect(backend.calls).toEqual([]);
  });

  it("and may not wait sends no POST behind a claim that was in time", async () => {
    await using backend = await ScriptedBackend.open();
    const abort = new AbortController();
    let stopped = Promise.resolve();
    await using router = await openTestRouter([backend], {
      onEvent: ({ kind }) => {
        if (kind !== "placed") return;
        stopped = router.router.stop({ signal: abort.signal });
        abort.abort();
      },
    });
    expect((await router.submit("run-1"))?.body).toMatch(/submission outcome unknown/);
    await stopped;
    expect(backend.calls).toEqual(["GET /v1/health"]);
    expect(await router.ledger.lookup("run-1")).toMatchObject({ backend: backend.origin });
  });

  it.each([
    ["from the start", true],
    ["any longer", false],
  ])(
    "and may not wait %s cuts off callers that do not take their answers",
    async (_when, isAbortedBefore) => {
      const record = JSON.stringify({ output: "x".repeat(16_000_000) });
      await using backend = await ScriptedBackend.open((request, socket) =>
        request.path === "/v1/executions/run-1" ? jsonAnswer(200, record) : willing(request, socket),
      );
      // Nothing else ends it while the test runs.
      const limits = { operationMs: 600_000, writeMs: 600_000 };
      await using router = await openTestRouter([backend], { limits });
      await router.submit("run-1");
      const socket = connect(router.port, "127.0.0.1").pause();
      socket.on("error", () => undefined);
      socket.write(bodiless("GET", "/v1/executions/run-1"));
      await until("the read", () => backend.calls.length === 3 && router.router.counts().running === 0);
      const abort = new AbortController();
      if (isAbortedBefore) abort.abort();
      const stopped = router.router.stop({ signal: abort.signal });
      abort.abort();
      await stopped;
      socket.destroy();
    },
  );

  it("before it listened is stopped at once, and never listens", async () => {
    const ledger = await openMemoryLedger();
    const router = createRouter({
      ledger,
      backends: createBackendList({ origins: ["http://n"] }),
      tokens: { load: () => ({ client: [], backend: Buffer.of(), capability: [] }) },
    });
    await router.stop();
    await expect(router.listen({ host: "127.0.0.1", port: 0 })).rejects.toThrow(RouterOptionError);
  });
});

describe("a router", () => {
  it("listens once", async () => {
    await using router = await openTestRouter([await ScriptedBackend.open()]);
    await expect(router.router.listen({ host: "127.0.0.1", port: 0 })).rejects.toThrow(RouterOptionError);
  });

  it.each(["runningCount", "connectMs"] as const)("refuses a %s that is no limit", async (name) => {
    for (const value of [0, -1, 1.5, Number.NaN])
      await expect(
        openTestRouter([], { limits: { [name]: value }, backends: { origins: async () => [] } }),
      ).rejects.toThrow(RouterOptionError);
  });

  it("says what the system says of an address that is taken", async () => {
    await using one = await openTestRouter([await ScriptedBackend.open()]);
    const other = createRouter({
      ledger: one.ledger,
      backends: { origins: async () => [] },
      tokens: { load: () => ({ client: [], backend: Buffer.of(), capability: [] }) },
    });
    await expect(other.listen({ host: "127.0.0.1", port: one.port })).rejects.toMatchObject({
      code: "EADDRINUSE",
    });
  });
});
