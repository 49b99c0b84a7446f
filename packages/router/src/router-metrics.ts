// `GET /metrics`: events are counted as they come, the rest is read when somebody asks.
import { createMetrics, type Metrics } from "@cellkit/daemon";
import type { PosixLedgerEvent } from "@cellkit/ledger";
import type { BackendSource, DiscoveryEvent } from "./backend/backend-list.ts";
import { BackendSeries } from "./backend-series.ts";
import type { CapacityWatch } from "./capacity-watch.ts";
import { fingerprintParts } from "./fingerprint/fingerprint.ts";
import type { ReplicaWatch } from "./fingerprint/replica-watch.ts";
import type { RouterCounts } from "./router.ts";
import type { RouterEvent } from "./router-event.ts";

/** What the metrics are read from. Parts that come later than the first event are asked for when they are needed. */
export interface RouterMetricsSources {
  readonly version: string;
  readonly counts: () => RouterCounts | undefined;
  readonly backends: BackendSource;
  readonly capacity: () => CapacityWatch | undefined;
  readonly replicas: () => ReplicaWatch | undefined;
}

/** The metrics of one router, named `router_…`, and what they hear. */
export interface RouterMetrics {
  readonly metrics: Metrics;
  hear(event: RouterEvent): void;
  hearLedger(event: PosixLedgerEvent): void;
  hearDiscovery(event: DiscoveryEvent): void;
}

/** Makes them. No label is an id or anything else of a caller's choice. */
export function createRouterMetrics(sources: RouterMetricsSources): RouterMetrics {
  const metrics = createMetrics({ prefix: "router_" });
  metrics
    .gauge("build_info", "Always 1; the label says which version runs.", { labels: ["version"] })
    .set({ version: sources.version }, 1);
  const requests = metrics.counter("requests_total", "Requests by call and status; status 0 had no answer.", [
    "route",
    "status",
  ]);
  const refusals = metrics.counter("refusals_total", "Answers of the router's own that are refusals.", [
    "refusal",
  ]);
  const durations = metrics.histogram("request_duration_seconds", "From a connection to its answer.", {
    labels: ["route"],
  });
  const dropped = metrics.counter(
    "connections_dropped_total",
    "Connections closed since there were too many.",
  );
  const credentials = metrics.counter(
    "credential_failures_total",
    "Requests refused since tokens could not be used.",
  );
  const claims = metrics.counter("claims_total", "Claims of ids by what the ledger answered.", ["result"]);
  const uncertain = metrics.counter(
    "uncertain_submissions_total",
    "Submissions whose outcome nobody knows yet.",
    ["backend"],
  );
  const placed = metrics.counter("placements_total", "New ids by the dispatcher that owns them.", [
    "backend",
  ]);
  const calls = metrics.counter(
    "backend_calls_total",
    "Calls to dispatchers; status 0 gave no usable answer.",
    ["backend", "call", "status"],
  );
  const callDurations = metrics.histogram("backend_call_duration_seconds", "Calls to dispatchers.", {
    labels: ["call"],
  });
  const healthy = metrics.gauge(
    "backend_healthy",
    "1 if a dispatcher took new work when it was last asked.",
    {
      labels: ["backend", "node"],
      async collect(each) {
        const listed = await sources.backends.origins();
        for (const [backend, node] of nodeNames) {
          if (listed.includes(backend)) continue;
          each.remove({ backend, node });
          nodeNames.delete(backend);
        }
      },
    },
  );
  const nodeNames = new Map<string, string>();
  const series = new BackendSeries([uncertain, placed, calls]);
  const eligible = metrics.gauge(
    "eligible_nodes",
    "Nodes that were eligible when capabilities were last asked for.",
  );
  const discoveries = metrics.counter("discoveries_total", "Lookups of dispatchers by name.", ["outcome"]);
  const unread = metrics.counter(
    "ledger_lookup_failures_total",
    "Calls about executions for which the ledger could not be read.",
  );
  const lockWait = metrics.histogram(
    "ledger_lock_wait_seconds",
    "Waiting for the lock of a directory's ledger.",
  );
  const corrupt = metrics.counter(
    "ledger_corrupt_reads_total",
    "Records of the ledger that could not be read.",
  );
  const defects = metrics.counter("defects_total", "Failures of the router's own. Each is a bug.");
  const gauge = (name: string, help: string, read: () => number | undefined | Promise<number>) =>
    metrics.gauge(name, help, {
      async collect(each) {
        each.set((await read()) ?? 0);
      },
    });
  gauge("connections", "Open connections of callers.", () => sources.counts()?.connections);
  gauge("requests_running", "Requests that run.", () => sources.counts()?.running);
  gauge("requests_waiting", "Requests that wait for their turn.", () => sources.counts()?.waiting);
  gauge("backends", "Dispatchers known now.", async () => {
    const listed = await sources.backends.origins();
    await series.trim(listed);
    return listed.length;
  });
  gauge(
    "ledger_records",
    "Ids in the ledger, as last counted; 0 where they are not counted.",
    () => sources.capacity()?.count,
  );
  gauge("ledger_capacity", "Ids that the ledger may hold; 0: no limit.", () => sources.capacity()?.capacity);
  gauge(
    "replicas",
    "Replicas that were alive at the last look, this one included.",
    () => sources.replicas()?.replicaCount,
  );
  gauge("fingerprint_failing", "1 while fingerprints cannot be left or read.", () =>
    Number(sources.replicas()?.isFailing ?? false),
  );
  metrics.gauge("replica_mismatches", "Other replicas that have another list, ledger or token.", {
    labels: ["part"],
    collect(each) {
      for (const part of fingerprintParts) {
        const count = sources.replicas()?.mismatches.filter((mismatch) => mismatch.part === part).length ?? 0;
        each.set({ part }, count);
      }
    },
  });

  return {
    metrics,
    hear(event) {
      switch (event.kind) {
        case "request":
          requests.inc({ route: event.route, status: String(event.status ?? 0) });
          if (event.refusal !== undefined) refusals.inc({ refusal: event.refusal });
          durations.observe({ route: event.route }, event.durationMs / 1_000);
          return;
        case "dropped":
          return dropped.inc();
        case "credentials":
          return credentials.inc();
        case "claim":
          return claims.inc({ result: event.result });
        case "lookup":
          return unread.inc();
        case "placed":
          series.see(event.backend);
          return placed.inc({ backend: event.backend });
        case "uncertain":
          series.see(event.backend);
          return uncertain.inc({ backend: event.backend });
        case "backend":
          series.see(event.backend);
          calls.inc({ backend: event.backend, call: event.call, status: String(event.status ?? 0) });
          return callDurations.observe({ call: event.call }, event.durationMs / 1_000);
        case "health": {
          const { backend } = event;
          const before = nodeNames.get(backend) ?? "";
          const node = event.node === undefined ? before : nodeLabel(event.node.node_name);
          if (node !== before) healthy.remove({ backend, node: before });
          nodeNames.set(backend, node);
          return healthy.set({ backend, node }, Number(event.healthy));
        }
        case "capabilities":
          return eligible.set(event.eligibleCount);
        case "defect":
          return defects.inc();
      }
    },
    hearLedger(event) {
      if (event.kind === "lock") lockWait.observe(event.lockWaitMs / 1_000);
      else if (event.kind === "corrupt") corrupt.inc();
    },
    hearDiscovery: ({ problem }) =>
      discoveries.inc({ outcome: problem === undefined ? "answered" : "failed" }),
  };
}

/** A dispatcher chooses its node's name, so that it is cut and has printable ASCII alone before it becomes a label. */
export function nodeLabel(name: string): string {
  return name.slice(0, 64).replaceAll(/[^ -~]/g, "?");
}
