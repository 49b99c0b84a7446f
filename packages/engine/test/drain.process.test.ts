// A drain hands the cells over: sockets are told, peers serve at once, nothing is lost.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { counted } from "./support/counts.ts";
import { startFleet, type TestFleet } from "./support/fleet.ts";
import { ask, askJson } from "./support/http.ts";
import { openSocket } from "./support/sockets.ts";
import { rooms } from "./support/workers.ts";

/** Half of that is how long workerd keeps a cell that it cannot hand over. */
const stopTimeoutMs = 120_000;
/** Where cells are handed over, nobody waits for more than a moment. */
const handedOverMs = 20_000;

interface Count {
  readonly count: number;
  readonly boot: string;
}
let fleet: TestFleet;

beforeEach(async () => {
  fleet = await startFleet();
  await fleet.deploy({ source: rooms, classes: ["Room"] });
});
afterEach(async () => {
  await fleet[Symbol.asyncDispose]();
});

describe("drain", () => {
  it("makes another engine serve a cell at once, with its data", async () => {
    const [leaving, staying] = [await fleet.node({ stopTimeoutMs }), await fleet.node()];
    const { boot } = await askJson<Count>(leaving.engine, "/a/write");
    const { membership } = await leaving.engine.snapshot();
    const startMs = performance.now();
    const draining = leaving.engine.drain({ deadlineMs: 2 * stopTimeoutMs });
    expect(leaving.engine.state).toBe("draining");
    let callCount = 0;
    const served = await until("the cell answers elsewhere", async () => {
      const answer = await askJson<Count>(staying.engine, "/a/write", { method: "POST" });
      callCount += 1;
      return answer.boot === boot ? undefined : answer;
    });
    expect(served.count).toBe(callCount + 1);
    expect(performance.now() - startMs).toBeLessThan(handedOverMs);
    expect(await draining).toEqual({ clean: true });
    expect([leaving.engine.state, leaving.engine.publicSocket]).toEqual(["stopped", undefined]);
    expect(await fleet.bucket.get(membership ?? "")).toBeUndefined();
  });

  it("closes regular sockets from inside with 1012, which frees their cell at once", async () => {
    const [leaving, staying] = [await fleet.node({ stopTimeoutMs }), await fleet.node()];
    // One socket through each node; both are held by the cell on the leaving one.
    const near = await openSocket(leaving.engine, "/a/regular");
    const far = await openSocket(staying.engine, "/a/regular");
    expect(await far.ask("hi")).toBe("echo hi");
    const startMs = performance.now();
    expect(await leaving.engine.closeCells()).toEqual({ cells: 1, regularSockets: 2, failed: 0 });
    expect(await Promise.all([near.closed, far.closed])).toEqual([
      { code: 1012, reason: "node draining" },
      { code: 1012, reason: "node draining" },
    ]);
    const draining = leaving.engine.drain({ deadlineMs: 2 * stopTimeoutMs });
    expect((await askJson<Count>(staying.engine, "/a/write", { method: "POST" })).count).toBe(1);
    expect(performance.now() - startMs).toBeLessThan(handedOverMs);
    expect(await draining).toEqual({ clean: true });
  });

  it("does not touch cells that have no regular socket", async () => {
    const { engine } = await fleet.node();
    const { boot } = await askJson<Count>(engine, "/a/write");
    const { socket, closed } = await openSocket(engine, "/b/hibernatable");
    expect(await engine.closeCells()).toEqual({ cells: 0, regularSockets: 0, failed: 0 });
    expect((await askJson<Count>(engine, "/a/read")).boot).toBe(boot);
    expect(socket.readyState).toBe(socket.OPEN);
    socket.terminate();
    await closed;
  });

  it("counts the sockets that cells hold, and forgets those that closed", async () => {
    const { engine } = await fleet.node();
    const sockets = await Promise.all([1, 2, 3].map(() => openSocket(engine, "/a/regular")));
    expect((await counted(engine)).regularSockets).toBe(3);
    for (const { socket } of sockets) socket.close();
    await until("they are gone", async () => (await engine.snapshot()).regularSockets === 0);
  });

  it("lets a request in a cell end before the cell moves", async () => {
    const [leaving, staying] = [await fleet.node(), await fleet.node()];
    const { boot } = await askJson<Count>(leaving.engine, "/a/write");
    const slow = askJson<Count>(staying.engine, "/a/slow");
    await until("it runs", () => leaving.log.some(({ message }) => message === "slow request runs"));
    const draining = leaving.engine.drain({ deadlineMs: 60_000 });
    expect((await slow).boot).toBe(boot);
    expect(await draining).toEqual({ clean: true });
  });

  it("waits for what celld still has in flight", async () => {
    const { engine } = await fleet.node();
    await fleet.node();
    let inFlight = true;
    const draining = engine.drain({ deadlineMs: 60_000, idle: () => !inFlight });
    const { membership } = await engine.snapshot();
    await until("the lease is gone", async () => (await fleet.bucket.get(membership ?? "")) === undefined);
    // Still there for the requests that celld has sent it.
    expect((await ask(engine, "/a/read")).status).toBe(200);
    inFlight = false;
    expect(await draining).toEqual({ clean: true });
  });

  it("ends workerd when the time is over, says so, and ends its lease", async () => {
    // Nothing else ends it: neither its own time nor the watchdog.
    const { engine } = await fleet.node({ stopTimeoutMs: 600_000, watchdogMs: 600_000 });
    const { membership, pid } = await engine.snapshot();
    process.kill(pid ?? 0, "SIGSTOP");
    expect(await engine.drain({ deadlineMs: 1500 })).toEqual({ clean: false });
    const lease = await fleet.bucket.get(membership ?? "");
    expect(JSON.parse(Buffer.from(lease?.body ?? []).toString()).expires_ms).toBe(1);
  });

  it("of an idle engine is done at once", async () => {
    await using empty = await startFleet();
    const { engine } = await empty.node();
    expect(await engine.drain({ deadlineMs: 60_000 })).toEqual({ clean: true });
    expect(engine.state).toBe("stopped");
  });
});
