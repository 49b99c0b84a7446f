// `GET /metrics`: counters of the public listener and of the engine.
import { createMetrics, type Metrics } from "@cellkit/daemon";
import type { NodeEngine } from "@cellkit/engine";
import type { SpliceServer } from "@cellkit/splice";

/** What the metrics are read from, each time somebody asks. */
export interface NodeMetricsSources {
  node: string;
  version: string;
  publicServer: SpliceServer;
  engine: () => NodeEngine | undefined;
}

/** The metrics of one node, named `celld_…`. */
export function createNodeMetrics({ node, version, publicServer, engine }: NodeMetricsSources): Metrics {
  const metrics = createMetrics({ prefix: "celld_", labels: { node } });
  const gauge = (name: string, help: string, read: () => number | undefined | Promise<number | undefined>) =>
    metrics.gauge(name, help, {
      async collect(each) {
        const value = await read();
        if (value === undefined) each.remove();
        else each.set(value);
      },
    });
  metrics
    .gauge("build_info", "Always 1; the label says which version runs.", { labels: ["version"] })
    .set({ version }, 1);
  gauge("healthy", "1 while the node may be sent requests.", () =>
    Number(engine()?.healthy() === true && !publicServer.draining),
  );
  gauge("draining", "1 from the begin of a drain.", () => Number(publicServer.draining));
  gauge("connections", "Client connections on the public listener.", () => publicServer.counts().connections);
  gauge(
    "requests_in_flight",
    "Requests on the public listener not yet answered.",
    () => publicServer.counts().inFlight,
  );
  gauge("sockets", "Upgraded connections on the public listener.", () => publicServer.counts().sockets);
  gauge(
    "resident_cells",
    "Cells open here, an upper bound.",
    async () => (await engine()?.snapshot())?.occupied,
  );
  gauge(
    "workerd_resident_memory_bytes",
    "Resident memory of workerd.",
    async () => (await engine()?.snapshot())?.rssBytes,
  );
  gauge(
    "workerd_restarts",
    "Starts of workerd beyond the first.",
    async () => (await engine()?.snapshot())?.restartCount,
  );
  const requests = metrics.gauge(
    "public_requests",
    "Requests of the public listener since the start, by how they ended.",
    {
      labels: ["outcome"],
      collect(each) {
        const { forwarded, local, refused, malformed, timedOut, unavailable, lost, upgraded } =
          publicServer.totals;
        const counts = { forwarded, local, refused, malformed, timedOut, unavailable, lost, upgraded };
        for (const [outcome, count] of Object.entries(counts)) each.set({ outcome }, count);
      },
    },
  );
  requests.reset();
  return metrics;
}
