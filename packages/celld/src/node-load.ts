// What the node's record says of its load. The original's operator looks at these members; whether ours does is its own matter.
import { readdirSync, readFileSync } from "node:fs";
import type { NodeLoad } from "@cellkit/peer";
import type { SpliceServer } from "@cellkit/splice";

/** Measures the load at this moment. `residentCells` is given, since only the engine knows it. */
export function nodeLoad(publicServer: SpliceServer, residentCells = 0): NodeLoad {
  const { rss, heapUsed } = process.memoryUsage();
  return {
    sampledMs: Date.now(),
    residentCells,
    hostWebsockets: publicServer.counts().sockets,
    rssBytes: rss,
    inUseBytes: heapUsed,
    cpuPercentX100: cpuPercentX100(),
    openFds: openFds(),
    fdLimit: fdLimit(),
    pressured: false,
    shedCells: 0,
    restoring: 0,
  };
}

let last = { cpu: process.cpuUsage(), atMs: performance.now() };

/** Of one CPU, since the last call. */
function cpuPercentX100(): number {
  const { user, system } = process.cpuUsage(last.cpu);
  const spentMs = performance.now() - last.atMs;
  last = { cpu: process.cpuUsage(), atMs: performance.now() };
  return spentMs <= 0 ? 0 : Math.round(((user + system) / 1000 / spentMs) * 10_000);
}

/** 0 where the system does not tell. */
function openFds(): number {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    // No /proc: not Linux.
    return 0;
  }
}

/** 0 where the system does not tell, or there is no limit. */
function fdLimit(): number {
  try {
    return Number(/^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1] ?? 0);
  } catch {
    // No /proc: not Linux.
    return 0;
  }
}
