import { afterEach, describe, expect, it, vi } from "vitest";
import { type PlacementRequest, placeByChance, placeByHash, type RouterEvent } from "../src/index.ts";
import { guardListener } from "../src/router-event.ts";

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
  return { request: { id: "summary-4f1c9a52", body: Buffer.of(), backends: ["a", "b", "c"], health }, asked };
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
