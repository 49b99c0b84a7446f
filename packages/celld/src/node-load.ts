// What the node's record says of its load. The original's operator looks at these members; whether ours does is its own matter.
import { readdirSync, readFileSync } from "node:fs";
import type { EngineSnapshot, NodeEngine } from "@cellkit/engine";
import type { NodeLoad } from "@cellkit/peer";
import type { SpliceServer } from "@cellkit/splice";
import { isRestoring } from "./state.ts";

/** What a load is measured of. */
export interface LoadSources {
  readonly publicServer: Pick<SpliceServer, "counts">;
  readonly engine: () => Pick<NodeEngine, "snapshot"> | undefined;
}

/**
 * Measures this process and its workerd. A record is written at once, and what workerd counts is asked for: each call
 * gives what the question of the call before brought (so it is one renewal old, as `sampledMs` says), and asks anew.
 */
export class LoadMeter {
  readonly #sources: LoadSources;
  #load: NodeLoad;
  #asking = false;
  #last = { spentUs: cpuUs(undefined), atMs: performance.now() };

  constructor(sources: LoadSources) {
    this.#sources = sources;
    this.#load = this.#measure(undefined);
  }

  /** The load as of `sampledMs`. Never waits, never throws. */
  read(): NodeLoad {
    if (!this.#asking) {
      this.#asking = true;
      void this.#ask();
    }
    return this.#load;
  }

  async #ask(): Promise<void> {
    try {
      this.#load = this.#measure(await this.#sources.engine()?.snapshot());
    } finally {
      this.#asking = false;
    }
  }

  #measure(snapshot: EngineSnapshot | undefined): NodeLoad {
    return {
      sampledMs: Date.now(),
      // While workerd does not answer nobody knows better than it did.
      residentCells: snapshot?.occupied ?? (snapshot?.pid === undefined ? 0 : this.#load.residentCells),
      hostWebsockets: this.#sources.publicServer.counts().sockets,
      rssBytes: process.memoryUsage.rss() + (snapshot?.rssBytes ?? 0),
      // What workerd's allocator holds is not known here.
      inUseBytes: null,
      cpuPercentX100: this.#cpuPercentX100(snapshot?.pid),
      openFds: Math.max(openFds("self"), snapshot?.pid === undefined ? 0 : openFds(snapshot.pid)),
      fdLimit: fdLimit(),
      pressured: false,
      shedCells: 0,
      restoring: isRestoring(snapshot?.state) ? 1 : 0,
    };
  }

  /** Of one CPU, since the last call. */
  #cpuPercentX100(pid: number | undefined): number {
    const { spentUs, atMs } = this.#last;
    this.#last = { spentUs: cpuUs(pid), atMs: performance.now() };
    const sinceMs = this.#last.atMs - atMs;
    // A workerd that was started anew has spent less than the one before.
    return Math.max(0, Math.round(((this.#last.spentUs - spentUs) / 1000 / Math.max(1, sinceMs)) * 10_000));
  }
}

/** Clock ticks of Linux are a hundredth of a second, on every machine that Node runs on. */
const tickUs = 10_000;

/** CPU time of this process and of another one, so far. */
function cpuUs(pid: number | undefined): number {
  const { user, system } = process.cpuUsage();
  if (pid === undefined) return user + system;
  const text = readText(`/proc/${pid}/stat`);
  // The second field is the command in parentheses; utime and stime are fields 14 and 15.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return user + system + (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * tickUs;
}

/** Of the process that has more; 0 where the system does not tell. */
function openFds(process: "self" | number): number {
  try {
    return readdirSync(`/proc/${process}/fd`).length;
  } catch {
    // No /proc: not Linux. Or the process is gone.
    return 0;
  }
}

/** Of each process; workerd inherits it. 0 where the system does not tell, or there is no limit. */
function fdLimit(): number {
  return Number(/^Max open files\s+(\d+)/m.exec(readText("/proc/self/limits"))?.[1] ?? 0);
}

/** Empty where the system does not tell. */
function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // No /proc: not Linux. Or the process is gone.
    return "";
  }
}
