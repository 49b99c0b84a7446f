// The naming rule of Prometheus, checked when a metric is made rather than when somebody graphs it.
// See https://prometheus.io/docs/practices/naming/
import { MetricNameError } from "../errors.ts";

/** Kinds of metrics that a daemon may have. */
export type MetricKind = "counter" | "gauge" | "histogram";

const notBaseUnits: Readonly<Record<string, string>> = {
  ms: "seconds",
  milliseconds: "seconds",
  us: "seconds",
  microseconds: "seconds",
  minutes: "seconds",
  kb: "bytes",
  mb: "bytes",
  kilobytes: "bytes",
  megabytes: "bytes",
  percent: "ratio",
};

/**
 * The full name of a metric: prefix and name, checked.
 *
 * @param prefix for example `celld_`; lower case, ends in `_`
 * @throws {@link MetricNameError} (`CELLKIT_DAEMON_METRIC_NAME`) when it is not snake case, repeats the prefix, a counter
 * does not end in `_total` or another kind does, or a unit is not a base unit (seconds, bytes, ratio).
 */
export function metricName(kind: MetricKind, prefix: string, name: string): string {
  const full = `${prefix}${name}`;
  if (!/^[a-z][a-z0-9]*(_[a-z0-9]+)*_$/.test(prefix)) {
    throw new MetricNameError(full, `the prefix must be lower case and end in "_", not "${prefix}"`);
  }
  if (!/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(name)) throw new MetricNameError(full, "write it in snake_case");
  if (name.startsWith(prefix)) throw new MetricNameError(full, "the prefix is put before it; leave it out");
  const words = name.split("_");
  if ((kind === "counter") !== (words.at(-1) === "total")) {
    const rule =
      kind === "counter" ? "a counter ends in _total" : `only counters end in _total, this is a ${kind}`;
    throw new MetricNameError(full, rule);
  }
  for (const word of words) {
    const base = notBaseUnits[word];
    if (base !== undefined) throw new MetricNameError(full, `use the base unit ${base}, not ${word}`);
  }
  return full;
}
