// How a node dies, and what the fleet sees of it.
import { rm } from "node:fs/promises";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { Fleet } from "./support/fleet.ts";
import { processesOf } from "./support/processes.ts";
import type { TestNode } from "./support/test-node.ts";
import { until } from "./support/until.ts";

let fleet: Fleet;
let victim: TestNode;
let survivor: TestNode;

beforeAll(async () => {
  const started = await Fleet.start(2);
  fleet = started.fleet;
  [victim, survivor] = started.nodes as [TestNode, TestNode];
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** Makes the victim the owner of a room that holds one message. */
async function roomOfVictim(room: string): Promise<void> {
  const id = "00000000-0000-4000-8000-000000000000";
  const { status } = await victim.ask(`/rooms/${room}/messages?id=${id}`, { method: "POST", body: "hello" });
  expect(status).toBe(200);
}

/** Asks a node for a room's count until it answers; how long that took, and the count. */
async function countAt(node: TestNode, room: string): Promise<{ tookMs: number; count: unknown }> {
  const began = performance.now();
  const count = await until(`answer of ${room} at ${node.node}`, async () => {
    const answer = await node.ask(`/rooms/${room}/count`).catch(() => undefined);
    return answer?.status === 200 && answer.body;
  });
  return { tookMs: performance.now() - began, count: count["count"] };
}

it("kill -9 of workerd: a survivor serves its cells within 2 s, and the node starts another one", async () => {
  await roomOfVictim("workerd-killed");
  const pid = await victim.workerdPid();
  process.kill(pid, "SIGKILL");
  const { tookMs, count } = await countAt(survivor, "workerd-killed");
  expect(count).toBe(1);
  expect(tookMs).toBeLessThan(2_000);

  await victim.process.until("healthy again", () => victim.healthy(), 20_000);
  const runtime = (await victim.state())["runtime"] as Record<string, unknown>;
  expect(runtime).toMatchObject({ state: "ready", restarts: 1 });
  expect(runtime["pid"]).not.toBe(pid);
  expect((await countAt(victim, "workerd-killed")).count).toBe(1);
});

it("kill -9 of celld leaves no process, and a restart on its data directory serves its cells at once", async () => {
  await roomOfVictim("celld-killed");
  const running = (await victim.processes()).map(({ command }) => command).join("\n");
  for (const part of [
    /^\S*node .*celld\/src\/main/m,
    /^\S+ serve .*workerd\/config/m,
    /^\/bin\/sh -c .*kill -9/m,
  ]) {
    expect(running).toMatch(part);
  }
  const killedMs = performance.now();
  await victim.kill();
  await until(
    "end of all its processes",
    async () => (await processesOf(victim.directory)).length === 0,
    2_000,
  );

  victim = await fleet.node(0);
  await victim.ready();
  const { tookMs, count } = await countAt(victim, "celld-killed");
  expect(count).toBe(1);
  expect(tookMs).toBeLessThan(3_000);
  // Without the proof of death the room would wait until the lease lapses by itself, 15 to 20 s after the kill.
  expect(performance.now() - killedMs).toBeLessThan(10_000);
  const predecessor = await victim.logged(
    "ended the lease",
    ({ msg }) => msg === "ended the lease of the former workerd of this directory",
  );
  expect(predecessor["end"]).toBe("expired");
});

it("a node whose data directory is deleted ends with code 1 and a line that says so, and its cells answer elsewhere", async () => {
  await roomOfVictim("directory-deleted");
  await rm(victim.directory, { recursive: true });
  const exit = await until("exit", () => victim.process.exit, 20_000);
  expect(exit).toEqual({ code: 1, signal: null });
  const fatal = victim.log.filter(({ level }) => level === "fatal");
  expect(fatal).toHaveLength(1);
  expect(fatal[0]).toMatchObject({ code: "CELLKIT_ENGINE_DATA_DIRECTORY" });
  expect(fatal[0]?.["msg"]).toMatch(/^the data directory \S+ cannot be used: ENOENT/);
  expect(await victim.processes()).toEqual([]);
  expect((await countAt(survivor, "directory-deleted")).count).toBe(1);
  victim = await fleet.node(0);
  await victim.ready();
});

/** The key of the lease that a node's workerd renews. */
async function leaseOf(node: TestNode): Promise<string> {
  const address = await fleet.advertisedBy(node);
  for await (const { key } of fleet.bucket.list("v1/nodes/")) {
    const stored = await fleet.bucket.get(key);
    const lease = JSON.parse(Buffer.from(stored?.body ?? []).toString()) as Record<string, unknown>;
    if (lease["address"] === address && Number(lease["expires_ms"]) > Date.now()) return key;
  }
  throw new Error(`no lease of ${address}`);
}

async function expectFenced(node: TestNode): Promise<void> {
  // workerd itself notices at the end of its lease, after 12 to 14 s; where the bucket is away as well, celld tries for
  // another 5 s to end the lease.
  const exit = await until("exit", () => node.process.exit, 40_000);
  expect(exit).toEqual({ code: 3, signal: null });
  const fatal = node.log.filter(({ level }) => level === "fatal");
  expect(fatal).toHaveLength(1);
  expect(fatal[0]).toMatchObject({ code: "CELLKIT_CELLD_FENCED" });
  expect(fatal[0]?.["msg"]).toMatch(
    /^SELF-FENCE: the lease lapsed before it could be renewed; .*start it again$/,
  );
  expect(await node.processes()).toEqual([]);
}

it("a node whose lease is taken away ends with code 3 and a SELF-FENCE line, and its cells answer elsewhere", async () => {
  await roomOfVictim("fenced");
  await fleet.bucket.delete(await leaseOf(victim));
  await expectFenced(victim);
  expect((await countAt(survivor, "fenced")).count).toBe(1);
});

it.runIf(inject("size") === "long")(
  "a bucket that is away for longer than a lease fences every node",
  async () => {
    await fleet.store.close();
    await expectFenced(survivor);
  },
);
