// How busy the machine was during a run. A fleet on a machine without room is slow for reasons that are none of its own.
import { cpus } from "node:os";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { breaches, type Summary } from "./tally.ts";

/** What was measured from the start of a run to its end. */
export interface MachineLoad {
  /** How late timers of this process were, 99th percentile. */
  loopDelayMs: number;
  /** Share of the processors' time that nobody used, 0 to 1. */
  idleRatio: number;
}

/** A timer that is later than this, or processors with less idle time than this, make a machine a busy one. */
const busy = { loopDelayMs: 100, idleRatio: 0.1 } as const;

const resolutionMs = 10;

/** Starts to measure; the answer ends it. */
export function measureLoad(): () => MachineLoad {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  const before = processorTimes();
  return () => {
    delay.disable();
    const after = processorTimes();
    const totalMs = after.totalMs - before.totalMs;
    return {
      // The histogram holds the time between two ticks, so an idle loop shows the resolution.
      loopDelayMs: Math.max(0, delay.percentile(99) / 1e6 - resolutionMs),
      idleRatio: totalMs === 0 ? 1 : (after.idleMs - before.idleMs) / totalMs,
    };
  };
}

/**
 * A sentence for a run in which nothing but the time without a cell broke its promise, on a machine that was busy. It
 * changes no verdict: it says where to look first.
 */
export function busyMachine(summary: Summary, drains: number, load: MachineLoad): string | undefined {
  const isBusy = load.loopDelayMs > busy.loopDelayMs || load.idleRatio < busy.idleRatio;
  const broken = breaches(summary, drains);
  const others = breaches({ ...summary, unavailableMs: 0 }, drains);
  if (!isBusy || broken.length === 0 || others.length > 0) return undefined;
  return (
    `The machine was busy: timers came ${Math.round(load.loopDelayMs)} ms late (99th percentile), and ` +
    `${Math.round(load.idleRatio * 100)} % of its processors' time was idle. Nothing but unavailableMs is over; ` +
    "run the demo again when nothing else runs."
  );
}

function processorTimes(): { idleMs: number; totalMs: number } {
  const sum = { idleMs: 0, totalMs: 0 };
  for (const { times } of cpus()) {
    sum.idleMs += times.idle;
    sum.totalMs += times.user + times.nice + times.sys + times.idle + times.irq;
  }
  return sum;
}
