// What an idle WebSocket in a tunnel with records keeps in memory, beside one on a direct connection.
import type { Duplex } from "node:stream";
import { setTimeout } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { TunnelPool } from "../src/tunnel-pool.ts";
import { ask, benchKey, type Owner, startOwner } from "./support/owner.ts";
import { openDirect, openThrough } from "./support/raw-websocket.ts";

const SOCKET_COUNT = 1000;
/** Both ends let go of what a round opened before the next one is measured. */
const settleMs = 500;

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

/** Memory of the heap and of buffers in both processes. */
async function memory(owner: Owner): Promise<number> {
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external + (await ask(owner, "memory"));
}

export const benchmarks = [
  {
    name: "peer/idle-socket-memory",
    subject: "an idle WebSocket through a tunnel, records required",
    against: "an idle WebSocket on a direct connection",
    unit: "KiB/socket (less is better)",
    roundCount: 5,
    conditions: `${SOCKET_COUNT} sockets; heap and buffers of both processes after garbage collection, the ws library's included`,
    async setup() {
      const owner = await startOwner("required");
      const plain = await startOwner("plain");
      const pool = new TunnelPool({ self: "bench", key: benchKey, records: "required" });
      const peer = { node: "owner", address: { host: "127.0.0.1", port: owner.port }, hasRecords: true };
      const measure = async (to: Owner, open: () => Promise<Duplex>) => {
        const before = await memory(to);
        const sockets: Duplex[] = [];
        for (let i = 0; i < SOCKET_COUNT; i += 1) sockets.push(await open());
        const after = await memory(to);
        for (const socket of sockets) socket.destroy();
        await setTimeout(settleMs);
        return (after - before) / SOCKET_COUNT / 1024;
      };
      return {
        subject: () => measure(owner, () => openThrough(pool, peer)),
        against: () => measure(plain, () => openDirect(plain.port)),
        close: async () => {
          await pool.close();
          owner.child.disconnect();
          plain.child.disconnect();
        },
      };
    },
  },
];
