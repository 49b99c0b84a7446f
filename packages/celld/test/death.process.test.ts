// How a node dies, and what the fleet sees of it.
import { rm } from "node:fs/promises";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { timed } from "../../../tools/test-support/timed.ts";
import { until } from "../../../tools/test-support/until.ts";
import { Fleet } from "./support/fleet.ts";
import type { TestNode } from "./support/test-node.ts";

/** Bounds in seconds are for a machine that is looked at; what must come before what is for every machine. */
const isLong = inject("size") === "long";

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

/** Asks a node for a room's count until it answers; the count, and how long that took. */
async function countAt(node: TestNode, room: string): Promise<{ ownMs: number; count: unknown }> {
  const { value, ownMs } = await timed(() =>
    until(
      `answer of ${room} at ${node.node}`,
      async () => {
        const answer = await node.ask(`/rooms/${room}/count`).catch(() => undefined);
        return answer?.status === 200 && answer.body;
      },
      60_000,
    ),
  );
  return { ownMs, count: value["count"] };
}

/** The lease that a node's workerd renews: nobody else serves its cells before it has lapsed, or somebody has ended it. */
async function leaseOf(node: TestNode): Promise<{ key: string; expiresMs: number }> {
  const address = await fleet.advertisedBy(node);
  for await (const { key } of fleet.bucket.list("v1/nodes/")) {
    const stored = await fleet.bucket.get(key);
    const lease = JSON.parse(Buffer.from(stored?.body ?? []).toString()) as Record<string, unknown>;
    const expiresMs = Number(lease["expires_ms"]);
    if (lease["address"] === address && expiresMs > Date.now()) return { key, expiresMs };
  }
  throw new Error(`no lease of ${address}`);
}

it("kill -9 of workerd: a survivor serves its cells within 2 s, and the node starts another one", async () => {
  await roomOfVictim("workerd-killed");
  const pid = await victim.workerdPid();
  const { expiresMs } = await leaseOf(victim);
  process.kill(pid, "SIGKILL");
  const { ownMs, count } = await countAt(survivor, "workerd-killed");
  expect(count).toBe(1);
  // 15 to 20 s after the kill.
  expect(Date.now()).toBeLessThan(expiresMs);
  if (isLong) expect(ownMs).toBeLessThan(2_000);

  await victim.process.until("healthy again", () => victim.healthy(), 60_000);
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
  await victim.kill();
  await victim.gone();

  const { value, ownMs } = await timed(async () => {
    victim = await fleet.node(0);
    await victim.ready();
    return await countAt(victim, "celld-killed");
  });
  expect(value.count).toBe(1);
  if (isLong) {
    expect(value.ownMs).toBeLessThan(3_000);
    expect(ownMs).toBeLessThan(10_000);
  }
  // Without the proof of death the room would wait until the lease lapses by itself, 15 to 20 s after the kill.
  const predecessor = await victim.logged(
    "ended the lease",
    ({ msg }) => msg === "ended the lease of the former workerd of this directory",
  );
  expect(predecessor["end"]).toBe("expired");
});

it("a node whose data directory is deleted ends with code 1 and a line that says so, and its cells answer elsewhere", async () => {
  await roomOfVictim("directory-deleted");
  await rm(victim.directory, { recursive: true, maxRetries: 5 });
  const exit = await until("exit", () => victim.process.exit, 60_000);
  expect(exit).toEqual({ code: 1, signal: null });
  const fatal = victim.log.filter(({ level }) => level === "fatal");
  expect(fatal).toHaveLength(1);
  expect(fatal[0]).toMatchObject({ code: "CELLKIT_ENGINE_DATA_DIRECTORY" });
  expect(fatal[0]?.["msg"]).toMatch(/^the data directory \S+ cannot be used: ENOENT/);
  await victim.gone();
  expect((await countAt(survivor, "directory-deleted")).count).toBe(1);
  victim = await fleet.node(0);
  await victim.ready();
});

async function expectFenced(node: TestNode): Promise<void> {
  // workerd itself notices at the end of its lease, after 12 to 14 s; where the bucket is away as well, celld tries for
  // another 5 s to end the lease.
  const exit = await until("exit", () => node.process.exit, 90_000);
  expect(exit).toEqual({ code: 3, signal: null });
  const fatal = node.log.filter(({ level }) => level === "fatal");
  expect(fatal).toHaveLength(1);
  expect(fatal[0]).toMatchObject({ code: "CELLKIT_CELLD_FENCED" });
  // workerd's own words: of a renewal that was refused, or of the record, where it reads that first.
  expect(fatal[0]?.["msg"]).toMatch(/^SELF-FENCE: .*(?:lease|record).*; .*start it again$/);
  await node.gone();
}

it("a node whose lease is taken away ends with code 3 and a SELF-FENCE line, and its cells answer elsewhere", async () => {
  await roomOfVictim("fenced");
  await fleet.bucket.delete((await leaseOf(victim)).key);
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
