import { describe, expect, it } from "vitest";
import { HeldTurn, OriginTurns } from "../src/backend/origin-turns.ts";

function open(limitCount = 1) {
  const abort = new AbortController();
  const silent = new Set<string>();
  const turns = new OriginTurns({
    limitCount,
    isSilent: (origin) => silent.has(origin),
    signal: abort.signal,
  });
  return { turns, silent, abort };
}

describe("turns at a dispatcher", () => {
  it("are so many, and other dispatchers have their own", () => {
    const { turns } = open(2);
    const first = turns.take("a");
    expect(first).toBeDefined();
    expect(turns.take("a")).toBeDefined();
    expect(turns.take("a")).toBeUndefined();
    expect(turns.take("b")).toBeDefined();
    first?.();
    first?.();
    expect(turns.take("a")).toBeDefined();
    expect(turns.take("a")).toBeUndefined();
  });

  it("go on to those in line, first come, first served, and nobody overtakes them", async () => {
    const { turns } = open();
    const first = turns.take("a");
    const order: string[] = [];
    const waiting = ["x", "y"].map(async (name) => {
      const leave = await turns.wait("a");
      order.push(name);
      return leave;
    });
    first?.();
    expect(turns.take("a")).toBeUndefined();
    (await waiting[0])?.();
    (await waiting[1])?.();
    expect(order).toEqual(["x", "y"]);
    expect(turns.take("a")).toBeDefined();
  });

  it("are waited for no longer once the dispatcher is silent", async () => {
    const { turns, silent } = open();
    const leave = turns.take("a");
    const waiting = Promise.allSettled([turns.wait("a"), turns.wait("a")]);
    silent.add("a");
    const refused = { status: "rejected", reason: { sent: "no", backend: "a" } };
    expect(await waiting).toMatchObject([refused, refused]);
    silent.clear();
    leave?.();
    expect(await turns.wait("a")).toBeTypeOf("function");
  });

  it("are waited for no longer once the router stops", async () => {
    const { turns, abort } = open();
    turns.take("a");
    const waiting = turns.wait("a");
    abort.abort();
    await expect(waiting).rejects.toMatchObject({ code: "CELLKIT_ROUTER_BACKEND" });
    await expect(() => turns.wait("a")).rejects.toMatchObject({ sent: "no" });
  });
});

it("a turn that comes when it is over is nobody's", () => {
  const { turns } = open();
  const held = new HeldTurn();
  const take = (origin: string) => turns.take(origin) as () => void;
  held.hold(take("a"));
  held.hold(take("b"));
  expect(turns.take("a")).toBeDefined();
  held.end();
  held.hold(take("b"));
  expect(turns.take("b")).toBeDefined();
});
