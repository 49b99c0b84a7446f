// `GET /metrics`: read from the listener when somebody asks.
import { addCertificateMetrics, type CertificateWatch, createMetrics, type Metrics } from "@cellkit/daemon";
import { type Refusal, refusals } from "./core/refusal.ts";
import type { EdgeListener } from "./edge-listener.ts";

/** What the metrics are read from. */
export interface EdgeMetricsSources {
  version: string;
  listener: EdgeListener;
  watch: CertificateWatch;
}

/** The metrics of one edge, named `edge_…`. */
export function createEdgeMetrics({ version, listener, watch }: EdgeMetricsSources): Metrics {
  const metrics = createMetrics({ prefix: "edge_" });
  const gauge = (name: string, help: string, read: () => number) =>
    metrics.gauge(name, help, { collect: (each) => each.set(read()) });
  metrics
    .gauge("build_info", "Always 1; the label says which version runs.", { labels: ["version"] })
    .set({ version }, 1);
  gauge("connections", "Client connections.", () => listener.open.connections);
  gauge("requests_in_flight", "Requests not yet answered.", () => listener.open.requests);
  gauge(
    "backend_requests_running",
    "Requests sent to the backend and not yet answered.",
    () => listener.backend.counts.running,
  );
  gauge(
    "backend_requests_waiting",
    "Requests that wait for a connection to the backend.",
    () => listener.backend.counts.waiting,
  );
  metrics.gauge("requests", "Requests since the start, by how they ended.", {
    labels: ["outcome"],
    collect(each) {
      const { forwarded, unavailable, cut, refused } = listener.counts;
      for (const [outcome, count] of Object.entries({ forwarded, unavailable, cut }))
        each.set({ outcome }, count);
      for (const refusal of Object.keys(refusals) as Refusal[])
        if (refusal !== "unavailable") each.set({ outcome: refusal }, refused[refusal] ?? 0);
    },
  });
  gauge(
    "handshake_failures",
    "TLS handshakes that failed since the start.",
    () => listener.counts.handshakeFailures,
  );
  metrics.counter(
    "connections_dropped_total",
    "Connections past twice the cap, closed without a handshake.",
    [],
    { count: () => listener.counts.dropped },
  );
  addCertificateMetrics(metrics, watch);
  return metrics;
}
