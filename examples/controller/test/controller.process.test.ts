import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { DaemonProcess } from "@cellkit/daemon";
import { ranAtMostOnce, until } from "@cellkit/testing";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { Controller } from "../src/controller.ts";
import { Plane } from "../src/plane.ts";
import { primes } from "../src/request.ts";

let plane: Plane;
beforeEach(async () => {
  plane = await Plane.start(400);
});
afterEach(() => plane.close());

const counts = [1, 2, 3, 4, 5, 6];

/** Waits until so many executions were started. */
const started = (count: number) =>
  until(`${count} starts`, () => plane.dispatchers.reduce((sum, { runs }) => sum + runs.size, 0) >= count);

it("all work runs once and has its receipt, though the router is killed and started again while it runs", async () => {
  const controller = new Controller(plane.client(), plane.work, { retryMs: 50 });
  const outcomes = counts.map((count) => controller.run(primes("killed", count)));
  await started(counts.length);
  await plane.killRouter();
  await plane.startRouter();
  for (const outcome of await Promise.all(outcomes)) {
    expect(outcome).toMatchObject({
      kind: "done",
      record: { phase: "Succeeded", receipt: { phase: "succeeded" } },
    });
  }
  expect(ranAtMostOnce(...plane.dispatchers).size).toBe(counts.length);
});

it.skipIf(inject("size") !== "long")(
  "a router that is killed between submissions costs no work its one run, unless somebody is told to look (long only)",
  async () => {
    const controller = new Controller(plane.client(2_000), plane.work, { retryMs: 50 });
    const works = counts.map((count) => primes("between", count));
    const outcomes = works.map((work) => controller.run(work));
    await started(1);
    await plane.killRouter();
    await plane.startRouter();
    const settled = await Promise.all(outcomes);
    const runs = ranAtMostOnce(...plane.dispatchers);
    for (const [index, outcome] of settled.entries()) {
      // Killed after the claim and before the POST: nobody can know, and so nobody sends it again.
      if (outcome.kind === "stuck") expect(outcome).toMatchObject({ next: "operator", sent: "maybe" });
      else expect(runs.get(works[index]?.id ?? "")).toBe(1);
    }
  },
);

it("a second controller goes on with what the first had begun, and reads the same outcomes afterwards", async () => {
  const stop = new AbortController();
  const first = new Controller(plane.client(), plane.work, { retryMs: 50, signal: stop.signal });
  const begun = Promise.allSettled(counts.map((count) => first.run(primes("resumed", count))));
  await started(counts.length);
  await plane.killRouter();
  const reason = new TypeError("stopped by the test");
  stop.abort(reason);
  expect(await begun).toContainEqual({ status: "rejected", reason });

  const second = new Controller(plane.client(), plane.work, { retryMs: 50 });
  const resumed = second.resume();
  await plane.startRouter();
  const outcomes = await resumed;
  expect(outcomes.size).toBeGreaterThan(0);
  const runs = ranAtMostOnce(...plane.dispatchers);
  expect([...outcomes].map(([id, { kind }]) => [kind, runs.get(id)])).toEqual(
    [...outcomes].map(() => ["done", 1]),
  );

  expect(await second.resume()).toEqual(new Map());
  for (const [id, outcome] of outcomes) expect(await first.outcome(id)).toEqual(outcome);
});

it("work that needs somebody to look is kept as such, and not tried under a new id", async () => {
  const controller = new Controller(plane.client(500), plane.work, { retryMs: 50 });
  for (const each of plane.dispatchers) each.fault("submit", { kind: "die", when: "after-accept" });
  const request = primes("lost", 1);
  const outcome = await controller.run(request);
  expect(outcome).toMatchObject({ kind: "stuck", next: "operator", sent: "maybe" });
  expect(await new Controller(plane.client(), plane.work).run(request)).toEqual(outcome);
  expect(ranAtMostOnce(...plane.dispatchers)).toEqual(new Map([[request.id, 1]]));
});

describe("a controller that is killed -9", () => {
  const main = fileURLToPath(new URL("./fixtures/controller-main.ts", import.meta.url));
  const start = (batch: string) =>
    new DaemonProcess("controller", {
      command: process.execPath,
      args: ["--conditions=@cellkit/source", main, plane.url, plane.tokenFile, plane.work, batch],
      env: { PATH: process.env["PATH"] },
    });
  const kept = () => readdir(plane.work);

  /** How many files were in the directory when it was killed: each step of each request is among them. */
  const moments = inject("size") === "long" ? Array.from({ length: 12 }, (_, count) => count) : [6];

  it.each(moments)("with %i files written: all work runs once and has its receipt", async (fileCount) => {
    const batch = `killed-at-${fileCount}`;
    const killed = start(batch);
    await until("the moment", async () => (await kept()).length >= fileCount || killed.exit !== undefined);
    await killed.kill();
    // Before the seventh file no work has ended; later it may have ended by itself at the last moment.
    if (fileCount < 7) expect(killed.exit).toEqual({ code: null, signal: "SIGKILL" });
    const next = new Controller(plane.client(), plane.work, { retryMs: 50 });
    const resumed = await next.resume();
    const works = counts.map((count) => primes(batch, count));
    const outcomes = await Promise.all(works.map((work) => next.run(work)));
    const ids = works.map(({ id }) => id);
    expect([...resumed.values(), ...outcomes].filter(({ kind }) => kind !== "done")).toEqual([]);
    expect(ranAtMostOnce(...plane.dispatchers)).toEqual(new Map(ids.map((id) => [id, 1])));
  });
});
