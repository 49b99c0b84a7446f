// What a call through the fleet costs the client's process, in CPU time, beside undici without and with retries.
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Agent, type Dispatcher, Pool, RetryAgent } from "undici";
import { Fleet } from "../src/fleet.ts";

const REQUEST_COUNT = 300;
/** A round's figure is its cheapest block: what others do on a shared machine can only add to the CPU time. */
const BLOCK_COUNT = 6;
const PARALLEL_COUNT = 32;

interface Side {
  readonly dispatcher: Dispatcher;
  readonly origin: string;
}

/** Starts the server process; answers its port. */
async function startServer(): Promise<{ child: ChildProcess; port: number }> {
  const child = fork(fileURLToPath(new URL("server.ts", import.meta.url)), {
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  const port = await new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.stdout?.once("data", (line: Buffer) => resolve(Number(line.toString())));
  });
  return { child, port };
}

/** CPU microseconds of this process per request, in the cheapest block. */
async function cpuPerRequest(side: Side): Promise<number> {
  let lowest = Number.POSITIVE_INFINITY;
  for (let block = 0; block < BLOCK_COUNT; block += 1) lowest = Math.min(lowest, await measureBlock(side));
  return lowest;
}

async function measureBlock({ dispatcher, origin }: Side): Promise<number> {
  let left = REQUEST_COUNT;
  const worker = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const { body } = await dispatcher.request({ origin, path: "/hello", method: "GET" });
      await body.text();
    }
  };
  const before = process.cpuUsage();
  await Promise.all(Array.from({ length: PARALLEL_COUNT }, worker));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / REQUEST_COUNT;
}

/** @param peer what the fleet is held against */
function comparison(peer: (origin: string) => Dispatcher) {
  return async () => {
    const { child, port } = await startServer();
    const origin = `http://127.0.0.1:${port}`;
    const authority = "http://app.internal";
    const fleet: Side = {
      dispatcher: new Fleet({ authority, endpoints: [origin], health: false }),
      origin: authority,
    };
    const other: Side = { dispatcher: peer(origin), origin };
    return {
      subject: () => cpuPerRequest(fleet),
      against: () => cpuPerRequest(other),
      async close() {
        await Promise.all([fleet.dispatcher.close(), other.dispatcher.close()]);
        child.disconnect();
      },
    };
  };
}

const shared = {
  subject: "Fleet.request",
  unit: "CPU us/request",
  roundCount: 81,
  conditions: `GET, 5-byte body read as text, cheapest of ${BLOCK_COUNT} blocks of ${REQUEST_COUNT} requests, ${PARALLEL_COUNT} at a time, server in another process`,
};

export const benchmarks = [
  {
    ...shared,
    name: "client/request-cpu",
    against: "undici Pool.request",
    setup: comparison((origin) => new Pool(origin, { connections: 128 })),
  },
  {
    ...shared,
    name: "client/request-cpu-vs-retryagent",
    against: "undici RetryAgent over Agent",
    setup: comparison(() => new RetryAgent(new Agent({ connections: 128 }))),
  },
];
