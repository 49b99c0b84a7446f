// What happens when a process dies: nothing is left behind, survivors serve its cells at once, and nothing that the dead
// process sent before can give it a cell back.
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { timed } from "../../../tools/test-support/timed.ts";
import { until } from "../../../tools/test-support/until.ts";
import { parseLease } from "../src/core/lease-record.ts";
import { identifyProcess, type ProcessIdentity, processFate } from "../src/process-identity.ts";
import { counted } from "./support/counts.ts";
import { startFleet, type TestFleet, type TestNode } from "./support/fleet.ts";
import { ask, askJson } from "./support/http.ts";
import { proxyLateWrites } from "./support/late-writes.ts";
import { startOwner } from "./support/owner-process.ts";
import { rooms } from "./support/workers.ts";

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

async function childOf({ engine }: TestNode): Promise<ProcessIdentity> {
  const { pid } = await engine.snapshot();
  const identity = pid === undefined ? undefined : await identifyProcess(pid);
  if (identity === undefined) throw new TypeError("the engine has no process");
  return identity;
}

/** Whether a lease keeps others from its cells. An expired record is removed by survivors once they took its alarms over. */
async function leaseHolds(key: string | undefined): Promise<boolean> {
  const stored = await fleet.bucket.get(key ?? "");
  const lease = stored === undefined ? undefined : parseLease(Buffer.from(stored.body).toString());
  return lease !== undefined && lease.expiresMs > 1;
}

/** When a lease lapses, as it was renewed last. */
async function lapseMs(key: string | undefined): Promise<number> {
  const stored = await fleet.bucket.get(key ?? "");
  return parseLease(Buffer.from(stored?.body ?? []).toString())?.expiresMs ?? 0;
}

/**
 * Asks for a cell at a node again and again. That has to succeed before that lease lapses, and within 2 s of this machine's
 * own on one that is looked at.
 */
async function expectServedBefore(lapsesMs: number, { engine }: TestNode, path: string): Promise<void> {
  const { ownMs } = await timed(() =>
    until("the survivor serves", async () => {
      const answer = await ask(engine, path, { method: "POST" }).catch(() => undefined);
      return answer?.status === 200;
    }),
  );
  expect(Date.now()).toBeLessThan(lapsesMs);
  if (inject("size") === "long") expect(ownMs).toBeLessThan(2000);
}

// Leases last 20 s here, as in production: the lease of a process that dies would hold for 15 s and more.

describe("kill -9 of workerd", () => {
  it("makes another engine serve its cells within 2 s", async () => {
    const [owner, survivor] = [await fleet.node(), await fleet.node()];
    expect(await askJson<Count>(owner.engine, "/a/write")).toMatchObject({ count: 1 });
    const { pid, membership } = await owner.engine.snapshot();
    const lapsesMs = await lapseMs(membership);
    process.kill(pid ?? 0, "SIGKILL");
    await expectServedBefore(lapsesMs, survivor, "/a/read");
    expect(await leaseHolds(membership)).toBe(false);
    expect((await askJson<Count>(survivor.engine, "/a/write")).count).toBe(2);
  });

  it("makes a call that was in the cell end as one that may have run", async () => {
    const [owner, survivor] = [await fleet.node(), await fleet.node()];
    await askJson(owner.engine, "/a/write");
    const { pid } = await owner.engine.snapshot();
    const called = ask(survivor.engine, "/a/slow?ms=60000");
    await until("it runs", () => owner.log.some(({ message }) => message === "slow request runs"));
    process.kill(pid ?? 0, "SIGKILL");
    const { status, headers, text } = await called;
    expect([status, headers["cellkit-outcome"]]).toEqual([500, "unknown"]);
    expect(text).toMatch(/^Worker failed: /);
  });

  it("makes another engine run the alarms of its cells, without anybody calling them", async () => {
    const [owner, survivor] = [await fleet.node(), await fleet.node()];
    await askJson(owner.engine, "/a/read");
    const { pid, residents } = await counted(owner.engine);
    await askJson(owner.engine, "/a/alarm");
    process.kill(pid ?? 0, "SIGKILL");
    await owner.engine.stop();
    await until("the alarm opened the cell", async () => (await survivor.engine.snapshot()).occupied === 1);
    expect((await counted(survivor.engine)).residents).toEqual(residents);
    await until("it ran", async () => (await askJson<Count>(survivor.engine, "/a/read")).count === 1);
  });

  it("starts another one, after telling", async () => {
    const events: string[] = [];
    const tell = { ready: () => events.push("ready"), exited: () => events.push("exited") };
    const node = await fleet.node({
      events: { ready: () => void tell.ready(), exited: () => void tell.exited() },
    });
    const before = await childOf(node);
    process.kill(before.pid, "SIGKILL");
    await until("it notices", () => node.engine.state === "restarting");
    expect([node.engine.healthy(), node.engine.publicSocket]).toEqual([false, undefined]);
    await until("it serves again", () => node.engine.healthy());
    expect(events).toEqual(["ready", "exited", "ready"]);
    expect((await node.engine.snapshot()).restartCount).toBe(1);
    expect((await askJson<Count>(node.engine, "/a/write")).count).toBe(1);
    expect(await processFate(before)).toBe("gone");
  });

  it("never brings a second owner when one of its lease writes arrives 5 s late", async () => {
    await using proxy = await proxyLateWrites(fleet.endpoint);
    const owner = await fleet.node({ endpoint: proxy.endpoint });
    const survivor = await fleet.node();
    await askJson(owner.engine, "/a/write");
    const child = await childOf(owner);
    const { membership } = await owner.engine.snapshot();
    proxy.hold(/\/v1\/nodes\/[0-9a-f]+\.json/);
    const late = await until("workerd renews its lease", () => proxy.held[0]);
    const lapsesMs = await lapseMs(membership);
    process.kill(child.pid, "SIGKILL");
    await expectServedBefore(lapsesMs, survivor, "/a/read");
    const { boot } = await askJson<Count>(survivor.engine, "/a/read");
    // Asked all the time: workerd would evict it after 10 s.
    const servedMs = performance.now();
    while (performance.now() - servedMs < 5000) {
      await askJson(survivor.engine, "/a/read");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(late.headers["if-match"]).toBeDefined();
    // 412 while the expired record is there, 404 once survivors removed it.
    expect([404, 412]).toContain(await late.deliver());
    expect(await leaseHolds(membership)).toBe(false);
    // Same object in memory: it was not taken away for a moment either.
    expect(await askJson<Count>(survivor.engine, "/a/write")).toEqual({ count: 2, boot });
  });

  it("gives nothing to a process whose first lease write arrives after its death", async () => {
    await using proxy = await proxyLateWrites(fleet.endpoint);
    const survivor = await fleet.node();
    await askJson(survivor.engine, "/a/write");
    proxy.hold(/\/v1\/nodes\/[0-9a-f]+\.json/);
    const node = await fleet.node({ endpoint: proxy.endpoint, start: false });
    const starting = node.engine.start().catch((error: unknown) => error);
    const late = await until("workerd writes its lease", () => proxy.held[0]);
    expect(late.headers["if-none-match"]).toBe("*");
    await node.engine.stop();
    expect(await starting).toBeInstanceOf(Error);
    expect(await late.deliver()).toBe(200);
    expect((await askJson<Count>(survivor.engine, "/a/write")).count).toBe(2);
    expect((await askJson<Count>(survivor.engine, "/b/write")).count).toBe(1);
  });
});

describe("kill -9 of the process that owns the engine", () => {
  const options = (directory: string, advertise: string) => {
    const { bucketUrl, endpoint, credentials } = fleet;
    return { bucketUrl, endpoint, credentials, directory, advertise };
  };

  it("leaves no process", async () => {
    const { directory, advertise } = await fleet.node({ start: false });
    const owner = await startOwner(options(directory, advertise));
    const child = await identifyProcess(owner.childPid);
    if (child === undefined) throw new TypeError("the owner has no workerd");
    expect(await processFate(child)).toBe("alive");
    owner.process.kill("SIGKILL");
    await until("workerd is gone", async () => (await processFate(child)) === "gone");
  });

  it("lets the next start on the same directory end the lease, so that a survivor serves at once", async () => {
    const survivor = await fleet.node();
    const { directory, advertise, engine } = await fleet.node({ start: false });
    const owner = await startOwner(options(directory, advertise));
    await askJson(owner.engine, "/a/write");
    const lapsesMs = await lapseMs(owner.membership);
    owner.process.kill("SIGKILL");
    await once(owner.process, "exit");
    await engine.start();
    expect(await leaseHolds(owner.membership)).toBe(false);
    await expectServedBefore(lapsesMs, survivor, "/a/read");
  });

  it("ends a workerd that outlived its owner before anything else", async () => {
    const { directory, advertise, engine } = await fleet.node({ start: false });
    const owner = await startOwner(options(directory, advertise));
    const child = await identifyProcess(owner.childPid);
    if (child === undefined) throw new TypeError("the owner has no workerd");
    // Without its watcher, as if the kernel had chosen that one when memory ran out.
    await killWatcher(owner.childPid);
    owner.process.kill("SIGKILL");
    await once(owner.process, "exit");
    expect(await processFate(child)).toBe("alive");
    await engine.start();
    expect(await processFate(child)).toBe("gone");
    expect(await leaseHolds(owner.membership)).toBe(false);
    expect((await askJson<Count>(engine, "/a/write")).count).toBe(1);
  });
});

describe("a workerd that does not answer", () => {
  it("is killed and started again", async () => {
    const node = await fleet.node({ watchdogMs: 1000 });
    const child = await childOf(node);
    process.kill(child.pid, "SIGSTOP");
    await until("it is unhealthy", () => !node.engine.healthy());
    await until("it is gone", async () => (await processFate(child)) === "gone");
    // A busy machine may hold up the next one for as long, too.
    await until("another one serves", async () => {
      const answer = await ask(node.engine, "/a/write").catch(() => undefined);
      return answer?.status === 200;
    });
  });
});

describe("a workerd that lost its lease", () => {
  it("is reported as fenced and not started again", async () => {
    const fenced: string[] = [];
    const node = await fleet.node({
      unsafeTimeDivisor: 4,
      events: { fenced: (detail) => void fenced.push(detail) },
    });
    const { membership } = await node.engine.snapshot();
    await fleet.bucket.put(membership ?? "", "{}");
    await until("it is fenced", () => node.engine.state === "fenced");
    // Its own words: of a renewal that was refused, or of the record, where it reads that first.
    expect(fenced).toEqual([expect.stringMatching(/lease|record/)]);
    expect([node.engine.healthy(), node.engine.publicSocket]).toEqual([false, undefined]);
    expect(await node.engine.drain({ deadlineMs: 1000 })).toEqual({ clean: false });
    expect(node.engine.state).toBe("fenced");
  });
});

/** Kills the shell that waits on the pipe: the only child of workerd. */
async function killWatcher(pid: number): Promise<void> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
  for (const child of children.trim().split(" ")) process.kill(Number(child), "SIGKILL");
}
