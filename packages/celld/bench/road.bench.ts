// What the road between nodes costs: CPU time of all processes for a request to a cell on another node, beside two workerd of
// the same kind that are connected directly. Both are asked at workerd's own socket, so that the public path counts in neither.
import { join } from "node:path";
import { until } from "../../../tools/test-support/until.ts";
import { Fleet } from "../test/support/fleet.ts";
import { cpuMicroseconds } from "./support/cpu-time.ts";
import { Load } from "./support/load.ts";
import { publicSocketOf, startPlainWorkerd } from "./support/plain-workerd.ts";

/** Few per round and many rounds: on a shared machine only neighbours in time compare. */
const requestCount = 2_000;
/** A server that has work: with few connections each wake-up of a process serves a single request. */
const connectionCount = 128;
/** Rounds before the first one that counts: until the compilers of both have seen enough. */
const warmUpCount = 5;

/** The workerd that is asked, the one that owns the cell, and what else takes part. */
interface Side {
  readonly asked: { readonly path: string; readonly pid: number };
  readonly owner: { readonly path: string; readonly pid: number };
  readonly others: readonly number[];
}

async function setup() {
  // Each node relays by itself: then all that the road costs is in these four processes.
  const { fleet, nodes } = await Fleet.start(2, { relay: "own" });
  const road = await Promise.all(
    nodes.map(async (node) => ({ path: publicSocketOf(node.directory), pid: await node.workerdPid() })),
  );
  const plain = await Promise.all(
    nodes.map((node) => startPlainWorkerd(node, join(fleet.directory, `plain-${node.node}`))),
  );
  const overRoad = sideOf(
    road,
    nodes.map((node) => node.process.pid ?? 0),
  );
  const direct = sideOf(plain, []);
  for (const side of [overRoad, direct]) await giveCell(side);
  for (let turn = 0; turn < warmUpCount; turn += 1) {
    for (const side of [overRoad, direct]) await cost(side);
  }
  return {
    subject: async () => 1e6 / (await cost(overRoad)),
    against: async () => 1e6 / (await cost(direct)),
    async close() {
      for (const { process } of plain) process.kill("SIGKILL");
      await fleet[Symbol.asyncDispose]();
    },
  };
}

function sideOf(workerds: readonly Side["asked"][], others: readonly number[]): Side {
  const [asked, owner] = workerds;
  if (asked === undefined || owner === undefined) throw new TypeError("a side has two workerd");
  return { asked, owner, others };
}

/** Makes the owner the cell's: whoever is asked first is. Then makes sure that it is. */
async function giveCell(side: Side): Promise<void> {
  await until("cell", () =>
    ask(side.owner.path, 1).then(
      () => true,
      () => false,
    ),
  );
  const before = await cpuMicroseconds([side.owner.pid]);
  await ask(side.asked.path, requestCount);
  const perRequest = ((await cpuMicroseconds([side.owner.pid])) - before) / requestCount;
  if (perRequest < 10)
    throw new TypeError(`the owner of the cell spends ${perRequest} us a request: it is not asked`);
}

async function ask(path: string, count: number): Promise<void> {
  const load = await Load.open({ path }, Math.min(count, connectionCount));
  await load.run(count);
  load.close();
}

/** CPU microseconds of all processes of a side for one request. */
async function cost({ asked, owner, others }: Side): Promise<number> {
  const pids = [asked.pid, owner.pid, ...others];
  const load = await Load.open({ path: asked.path }, connectionCount);
  const before = await cpuMicroseconds(pids);
  await load.run(requestCount);
  const used = (await cpuMicroseconds(pids)) - before;
  load.close();
  return used / requestCount;
}

export const benchmarks = [
  {
    name: "fleet/road",
    subject: "two nodes, over the road",
    against: "two workerd, connected directly",
    unit: "requests/CPU s",
    roundCount: 31,
    conditions: `GET of a small JSON answer from a cell of the chat example that the other node owns, ${requestCount} requests a round, ${connectionCount} kept connections to workerd's own socket; CPU time of both workerd and, on the road, both celld`,
    setup,
  },
];
