// The process's own figures: prom-client's, put right where they depend on when they are first asked for.
import type { Gauge, Registry } from "prom-client";

const cpuMetrics = [
  ["process_cpu_user_seconds_total", "User CPU time of the process in seconds.", ({ user }) => user],
  ["process_cpu_system_seconds_total", "System CPU time of the process in seconds.", ({ system }) => system],
  ["process_cpu_seconds_total", "CPU time of the process in seconds.", ({ user, system }) => user + system],
] as const satisfies [string, string, (usage: NodeJS.CpuUsage) => number][];

/** Those that prom-client reads from a histogram, which is empty for the first 20 ms after each scrape. */
const lagMembers = ["min", "max", "mean", "stddev", "p50", "p90", "p99"];

/** More seconds than any process has run: what the minimum of an empty histogram (2^63-1 ns) exceeds. */
const absurdSeconds = 1e9;

/**
 * Collects prom-client's default metrics, except that CPU time is that of the whole process, and not only since this call;
 * and that figures of the event loop are left out while there is nothing to tell.
 */
export function collectProcessMetrics(prom: typeof import("prom-client"), registry: Registry): void {
  prom.collectDefaultMetrics({ register: registry });
  for (const [name, help, microseconds] of cpuMetrics) {
    registry.removeSingleMetric(name);
    new prom.Counter({
      name,
      help,
      registers: [registry],
      collect() {
        this.reset();
        this.inc(microseconds(process.cpuUsage()) / 1e6);
      },
    });
  }
  for (const member of lagMembers) {
    const gauge = registry.getSingleMetric(`nodejs_eventloop_lag_${member}_seconds`);
    if (gauge !== undefined) leaveOutAbsurd(gauge as Gauge);
  }
}

function leaveOutAbsurd(gauge: Gauge): void {
  const set = gauge.set.bind(gauge);
  gauge.set = (labels: object | number, value?: number) => {
    const given = typeof labels === "number" ? labels : (value ?? Number.NaN);
    if (given < absurdSeconds) set(given);
    else gauge.remove();
  };
}
