// What the public path costs: CPU time of celld and its workerd for a request, beside a workerd without celld.
import { readlink } from "node:fs/promises";
import { join } from "node:path";
import { bundleProject } from "@cellkit/deployment";
import { freePort } from "../../../tools/test-support/free-port.ts";
import { chatProject, Fleet } from "../test/support/fleet.ts";
import { startBareWorkerd } from "./support/bare-workerd.ts";
import { cpuMicroseconds } from "./support/cpu-time.ts";
import { Load } from "./support/load.ts";

/** Few per round and many rounds: on a shared machine only neighbours in time compare. */
const requestCount = 4_000;
/** A server that has work: with few connections each wake-up of a process serves a single request. */
const connectionCount = 128;
/** Rounds before the first one that counts: until the compilers of both have seen enough. */
const warmUpCount = 5;

async function setup() {
  const { fleet, nodes } = await Fleet.start(1);
  const node = nodes[0];
  if (node === undefined) throw new TypeError("a fleet of one node has no node");
  const workerd = await node.workerdPid();
  const port = await freePort();
  const bare = await startBareWorkerd(
    await readlink(`/proc/${workerd}/exe`),
    await bundleProject(chatProject),
    { directory: join(fleet.directory, "bare"), port },
  );
  const spliced = { port: node.port, pids: [node.process.pid ?? 0, workerd] };
  const direct = { port, pids: [bare.pid ?? 0] };
  const cost = async ({ port, pids }: typeof spliced): Promise<number> => {
    const load = await Load.open({ host: "127.0.0.1", port, noDelay: true }, connectionCount);
    const before = await cpuMicroseconds(pids);
    await load.run(requestCount);
    const used = (await cpuMicroseconds(pids)) - before;
    load.close();
    return used / requestCount;
  };
  for (let turn = 0; turn < warmUpCount; turn += 1) {
    for (const side of [spliced, direct]) await cost(side);
  }
  return {
    subject: () => cost(spliced),
    against: () => cost(direct),
    async close() {
      bare.kill("SIGKILL");
      await fleet[Symbol.asyncDispose]();
    },
  };
}

export const benchmarks = [
  {
    name: "celld/public-path",
    subject: "celld and its workerd",
    against: "workerd alone",
    unit: "CPU us/request",
    roundCount: 31,
    conditions: `GET of a small JSON answer from a cell of the chat example, ${requestCount} requests a round, ${connectionCount} kept connections, same binary and Worker`,
    setup,
  },
];
