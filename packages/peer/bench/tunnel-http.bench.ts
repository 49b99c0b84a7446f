// What a tunnel costs a call: requests for each CPU second of both processes, beside undici without a tunnel.
import { type Dispatcher, Pool } from "undici";
import type { RecordsMode } from "../src/core/records-offer.ts";
import { TunnelPool } from "../src/tunnel-pool.ts";
import { benchKey, cpuOf, startOwner } from "./support/owner.ts";

const CONNECTION_COUNT = 16;
const REQUEST_COUNT = 6_000;
const WARM_UP_COUNT = 12_000;

const scope = `Counter:${"ab".repeat(32)}`;

/** Sends the requests, so many at a time. */
async function load(
  dispatcher: () => Dispatcher | Promise<Dispatcher>,
  options: Dispatcher.RequestOptions,
  count: number,
) {
  let unsent = count;
  const work = async () => {
    while (unsent > 0) {
      unsent -= 1;
      const { body } = await (await dispatcher()).request(options);
      await body.dump();
    }
  };
  await Promise.all(Array.from({ length: CONNECTION_COUNT }, work));
}

function benchmark(name: string, records: Extract<RecordsMode, "off" | "required">) {
  return {
    name,
    subject: `a call through the tunnel pool, records ${records}`,
    against: "undici's Pool and node:http, no tunnel",
    unit: "requests/CPU s",
    roundCount: 15,
    conditions:
      `GET, empty answer, ${REQUEST_COUNT} requests a round, ${CONNECTION_COUNT} at a time; ` +
      "two processes, CPU time of both",
    async setup() {
      const owner = await startOwner(records);
      const plain = await startOwner("plain");
      const tunnels = new TunnelPool({ self: "bench", key: benchKey, records });
      const peer = { node: "owner", address: { host: "127.0.0.1", port: owner.port }, hasRecords: false };
      const pool = new Pool(`http://127.0.0.1:${plain.port}`, { connections: CONNECTION_COUNT });
      const through = {
        path: "http://cell/hello",
        method: "GET",
        headers: { "x-cells-scope": scope },
      } as const;
      const direct = { path: "/hello", method: "GET" } as const;
      const tunnelled = (count: number) => load(() => tunnels.dispatcher(peer, "do"), through, count);
      const plainly = (count: number) => load(() => pool, direct, count);
      const perSecond = (cpuUs: number) => (REQUEST_COUNT / cpuUs) * 1e6;
      await tunnelled(WARM_UP_COUNT);
      await plainly(WARM_UP_COUNT);
      return {
        subject: async () => perSecond(await cpuOf(owner, () => tunnelled(REQUEST_COUNT))),
        against: async () => perSecond(await cpuOf(plain, () => plainly(REQUEST_COUNT))),
        close: async () => {
          await tunnels.close();
          await pool.close();
          owner.child.disconnect();
          plain.child.disconnect();
        },
      };
    },
  };
}

export const benchmarks = [
  benchmark("peer/tunnel-http", "off"),
  benchmark("peer/tunnel-http-records", "required"),
];
