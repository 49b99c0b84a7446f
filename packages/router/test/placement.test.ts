import { afterEach, describe, expect, it, vi } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import {
  type Placement,
  type PlacementRequest,
  placeByChance,
  placeByHash,
  type RouterEvent,
} from "../src/index.ts";
import { guardListener } from "../src/router-event.ts";
import { holdTime } from "./support/held-time.ts";
import { openTestRouter } from "./support/router.ts";
import { ScriptedBackend } from "./support/scripted-backend.ts";

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** Backends of which some are healthy, and the order in which they were asked. */
function placing(healthy: readonly string[]): { request: PlacementRequest; asked: string[] } {
  const asked: string[] = [];
  const health = async (origin: string) => {
    asked.push(origin);
    return { healthy: healthy.includes(origin), node: undefined };
  };
  const { signal } = new AbortController();
  const request = { id: "summary-4f1c9a52", body: Buffer.of(), backends: ["a", "b", "c"], health, signal };
  return { request, asked };
}

describe("a new id goes", () => {
  it("to the first healthy backend from where its hash points, and no further one is asked", async () => {
    const { request, asked } = placing(["a", "c"]);
    expect(await placeByHash(request)).toBe("c");
    expect(asked).toEqual(["b", "c"]);
  });

  it("to the first healthy one from a start of chance", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0.9);
    const { request, asked } = placing(["a"]);
    expect(await placeByChance(request)).toBe("a");
    expect(asked).toEqual(["c", "a"]);
  });

  it("nowhere when nobody is healthy", async () => {
    const { request, asked } = placing([]);
    expect(await placeByHash(request)).toBeUndefined();
    expect(asked).toEqual(["b", "c", "a"]);
  });
});

/** A rule that never answers, and the signal that it was given. */
function silentRule() {
  const asked = Promise.withResolvers<AbortSignal>();
  const placement: Placement = ({ signal }) => {
    asked.resolve(signal);
    return new Promise(() => undefined);
  };
  return { placement, asked: asked.promise };
}

describe("a rule that never answers", () => {
  it("is given up after its time: the id is free, its caller comes again, and a stop ends", async () => {
    const { placement, asked } = silentRule();
    await using backend = await ScriptedBackend.open();
    await using router = await openTestRouter([backend], { placement, limits: { placementMs: 100 } });
    const answer = router.submit("run-1");
    const signal = await asked;
    expect(signal.aborted).toBe(false);
    const stopped = router.router.stop();
    expect((await answer)?.body).toMatch(/retry same request without changing id/);
    await stopped;
    expect(signal.aborted).toBe(true);
    expect([backend.calls, await router.ledger.count()]).toEqual([[], 0]);
    expect(router.events.filter(({ kind }) => kind === "defect")).toMatchObject([
      { error: { code: "CELLKIT_ROUTER_PLACEMENT", message: expect.stringContaining("within 100 ms") } },
    ]);
  });

  it("hears of a stop that may not wait, which is no mistake of its own", async () => {
    const { placement, asked } = silentRule();
    await using backend = await ScriptedBackend.open();
    await using router = await openTestRouter([backend], { placement });
    const answer = router.submit("run-1");
    const signal = await asked;
    const stopped = router.router.stop({ signal: AbortSignal.abort() });
    expect(signal.aborted).toBe(true);
    expect((await answer)?.body).toMatch(/retry same request without changing id/);
    await stopped;
    expect(await router.ledger.count()).toBe(0);
    expect(router.events.some(({ kind }) => kind === "defect")).toBe(false);
  });

  it("and is this package's own is waited for as long as its probes take", async () => {
    holdTime();
    await using slow = await ScriptedBackend.open(() => "hang");
    await using backend = await ScriptedBackend.open();
    const origins = [slow.origin, backend.origin];
    await using router = await openTestRouter([], {
      backends: { origins: async () => origins },
      placement: placeByChance,
      limits: { placementMs: 1, healthMs: 200 },
    });
    vi.spyOn(Math, "random").mockReturnValue(0);
    const answer = router.submit("run-1");
    await until("the probe", () => slow.calls.length === 1);
    vi.advanceTimersByTime(200);
    expect((await answer)?.status).toBe(202);
  });
});

it("what a listener throws reaches the process, and not the router", () => {
  const later: (() => void)[] = [];
  vi.stubGlobal("queueMicrotask", (task: () => void) => later.push(task));
  const error = new TypeError("listener");
  const event: RouterEvent = { kind: "dropped" };
  guardListener(() => {
    throw error;
  })(event);
  expect(() => later[0]?.()).toThrow(error);
  expect(guardListener(undefined)(event)).toBeUndefined();
});
