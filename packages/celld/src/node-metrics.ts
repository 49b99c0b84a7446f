// `GET /metrics`: counters of the public listener and of the engine.
import { createMetrics, type Metrics } from "@cellkit/daemon";
import type { EngineSnapshot, NodeEngine } from "@cellkit/engine";
import type { SpliceServer } from "@cellkit/splice";

/** What the metrics are read from, each time somebody asks. */
export interface NodeMetricsSources {
  node: string;
  version: string;
  publicServer: SpliceServer;
  engine: () => NodeEngine | undefined;
  /** Variables of the environment that were accepted without effect. */
  ignoredVariables: readonly string[];
}

/** The metrics of one node, named `celld_…`. */
export function createNodeMetrics(sources: NodeMetricsSources): Metrics {
  const { node, version, publicServer, engine, ignoredVariables } = sources;
  const metrics = createMetrics({ prefix: "celld_", labels: { node } });
  const gauge = (name: string, help: string, read: () => number | undefined | Promise<number | undefined>) =>
    metrics.gauge(name, help, {
      async collect(each) {
        const value = await read();
        if (value === undefined) each.remove();
        else each.set(value);
      },
    });
  /** The metrics of one scrape are read at the same time: they share one question to the engine. */
  let asked: Promise<EngineSnapshot | undefined> | undefined;
  const ofEngine = (name: string, help: string, read: (snapshot: EngineSnapshot) => number | undefined) =>
    gauge(name, help, async () => {
      asked ??= (async () => engine()?.snapshot())().finally(() => {
        asked = undefined;
      });
      const snapshot = await asked;
      return snapshot === undefined ? undefined : read(snapshot);
    });

  metrics
    .gauge("build_info", "Always 1; the label says which version runs.", { labels: ["version"] })
    .set({ version }, 1);
  const ignored = metrics.gauge(
    "ignored_variable",
    "Always 1; the label names a variable of the environment that has no effect here.",
    { labels: ["variable"] },
  );
  for (const variable of ignoredVariables) ignored.set({ variable }, 1);

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
  ofEngine("resident_cells", "Cells open here, an upper bound.", ({ occupied }) => occupied);
  ofEngine("cells_opened", "Cells opened since workerd started.", ({ openedCells }) => openedCells);
  ofEngine(
    "regular_sockets",
    "Sockets that cells here hold and that keep them in memory.",
    ({ regularSockets }) => regularSockets,
  );
  ofEngine(
    "worker_failures",
    "Requests that ended with an exception of the Worker since workerd started.",
    ({ requestsFailed }) => requestsFailed,
  );
  ofEngine("workerd_resident_memory_bytes", "Resident memory of workerd.", ({ rssBytes }) => rssBytes);
  ofEngine("workerd_restarts", "Starts of workerd beyond the first.", ({ restartCount }) => restartCount);
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
