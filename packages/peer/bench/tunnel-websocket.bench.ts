// What a tunnel costs a WebSocket: echoed messages for each CPU second of both processes, beside a socket without one.
import type { Duplex } from "node:stream";
import { TunnelPool } from "../src/tunnel-pool.ts";
import { benchKey, cpuOf, startOwner } from "./support/owner.ts";
import { converse, openDirect, openThrough } from "./support/raw-websocket.ts";

const SOCKET_COUNT = 16;
const MESSAGE_COUNT = 20_000;
const WARM_UP_COUNT = 40_000;

function benchmark(name: string, records: "off" | "required") {
  return {
    name,
    subject: `a WebSocket through a tunnel, records ${records}`,
    against: "the same bytes on a direct connection",
    unit: "messages/CPU s",
    roundCount: 15,
    conditions:
      `64 bytes echoed by the ws library, ${MESSAGE_COUNT} messages a round over ${SOCKET_COUNT} sockets, one at a time ` +
      "on each; two processes, CPU time of both",
    async setup() {
      const owner = await startOwner(records);
      const plain = await startOwner("plain");
      const pool = new TunnelPool({ self: "bench", key: benchKey, records });
      const peer = { node: "owner", address: { host: "127.0.0.1", port: owner.port }, hasRecords: false };
      const tunnelled: Duplex[] = [];
      const direct: Duplex[] = [];
      for (let i = 0; i < SOCKET_COUNT; i += 1) {
        tunnelled.push(await openThrough(pool, peer));
        direct.push(await openDirect(plain.port));
      }
      await converse(tunnelled, WARM_UP_COUNT);
      await converse(direct, WARM_UP_COUNT);
      const perSecond = (cpuUs: number) => (MESSAGE_COUNT / cpuUs) * 1e6;
      return {
        subject: async () => perSecond(await cpuOf(owner, () => converse(tunnelled, MESSAGE_COUNT))),
        against: async () => perSecond(await cpuOf(plain, () => converse(direct, MESSAGE_COUNT))),
        close: async () => {
          for (const socket of [...tunnelled, ...direct]) socket.destroy();
          await pool.close();
          owner.child.disconnect();
          plain.child.disconnect();
        },
      };
    },
  };
}

export const benchmarks = [
  benchmark("peer/tunnel-websocket", "off"),
  benchmark("peer/tunnel-websocket-records", "required"),
];
