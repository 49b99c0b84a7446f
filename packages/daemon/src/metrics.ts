import { createRequire } from "node:module";
import type { Counter, Gauge, Histogram, Registry } from "prom-client";
import { metricName } from "./core/metric-name.ts";
import { collectProcessMetrics } from "./process-metrics.ts";

export type { Counter, Gauge, Histogram, Registry } from "prom-client";

/** How a daemon's metrics are made. */
export interface CreateMetricsOptions {
  /** Before every name, for example `celld_`. Lower case, ends in `_`. */
  prefix: string;
  /** Labels of every metric, for example `{ node: "node-1" }`. Default: none. */
  labels?: Readonly<Record<string, string>>;
  /** Also the process's own figures (CPU, memory, event loop, file descriptors), under their usual names. Default: true. */
  processMetrics?: boolean;
}

/** The metrics of one daemon, in a registry of their own: two daemons in one process do not meet. */
export interface Metrics {
  /** The registry underneath, for what this wrapper does not do. */
  readonly registry: Registry;
  /** The content type of {@link Metrics.text}. */
  readonly contentType: string;
  /** Only goes up. The name ends in `_total`. One whose `count` is kept elsewhere has no labels; it is asked before each read. */
  counter<L extends string = never>(
    name: string,
    help: string,
    labels?: readonly L[],
    options?: { count?: () => number },
  ): Counter<L>;
  /** Goes up and down. `collect` is called before each read; set the value there when it is cheap to ask for. */
  gauge<L extends string = never>(
    name: string,
    help: string,
    options?: { labels?: readonly L[]; collect?: (gauge: Gauge<L>) => void | Promise<void> },
  ): Gauge<L>;
  /** Counts values into buckets; `buckets` are upper bounds in the name's unit. Default: 5 ms to 10 s, in seconds. */
  histogram<L extends string = never>(
    name: string,
    help: string,
    options?: { labels?: readonly L[]; buckets?: readonly number[] },
  ): Histogram<L>;
  /** All metrics in Prometheus' text format: what `GET /metrics` answers. */
  text(): Promise<string>;
}

/**
 * The metrics of one daemon. The first call loads prom-client (about 70 ms of CPU): a daemon that must start fast makes its
 * metrics when it is asked for them.
 *
 * Each maker throws {@link MetricNameError} (`CELLKIT_DAEMON_METRIC_NAME`) for a name that breaks the rule of
 * {@link metricName}.
 */
export function createMetrics(options: CreateMetricsOptions): Metrics {
  const { prefix, labels: common, processMetrics = true } = options;
  const prom = createRequire(import.meta.url)("prom-client") as typeof import("prom-client");
  const registry = new prom.Registry();
  if (common !== undefined) registry.setDefaultLabels({ ...common });
  if (processMetrics) collectProcessMetrics(prom, registry);
  const registers = [registry];
  return {
    registry,
    contentType: registry.contentType,
    counter: <L extends string>(
      name: string,
      help: string,
      labels: readonly L[] = [],
      { count }: { count?: () => number } = {},
    ) =>
      new prom.Counter<L>({
        name: metricName("counter", prefix, name),
        help,
        labelNames: labels,
        registers,
        ...(count === undefined
          ? {}
          : {
              collect(this: Counter<L>) {
                this.reset();
                this.inc(count());
              },
            }),
      }),
    gauge: <L extends string>(
      name: string,
      help: string,
      {
        labels = [],
        collect,
      }: { labels?: readonly L[]; collect?: (gauge: Gauge<L>) => void | Promise<void> } = {},
    ) =>
      new prom.Gauge<L>({
        name: metricName("gauge", prefix, name),
        help,
        labelNames: labels,
        registers,
        ...(collect === undefined
          ? {}
          : {
              collect(this: Gauge<L>) {
                return collect(this);
              },
            }),
      }),
    histogram: (name, help, { labels = [], buckets } = {}) =>
      new prom.Histogram({
        name: metricName("histogram", prefix, name),
        help,
        labelNames: labels,
        registers,
        ...(buckets === undefined ? {} : { buckets: [...buckets] }),
      }),
    text: () => registry.metrics(),
  };
}
