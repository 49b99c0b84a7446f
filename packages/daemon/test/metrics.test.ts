import { expect, it } from "vitest";
import { createMetrics, MetricNameError } from "../src/index.ts";

it("gives its metrics in Prometheus' text format, each under the prefix", async () => {
  const metrics = createMetrics({ prefix: "toy_", labels: { node: "n1" }, processMetrics: false });
  metrics.counter("requests_total", "Requests.", ["outcome"]).inc({ outcome: "ok" }, 2);
  metrics.gauge("cells", "Cells.", { collect: (gauge) => gauge.set(3) });
  metrics.histogram("wait_seconds", "Waits.", { buckets: [1, 2] }).observe(1.5);
  const text = await metrics.text();
  expect(text).toContain("# TYPE toy_requests_total counter");
  expect(text).toContain('toy_requests_total{outcome="ok",node="n1"} 2');
  expect(text).toContain('toy_cells{node="n1"} 3');
  expect(text).toContain('toy_wait_seconds_bucket{le="2",node="n1"} 1');
  expect(metrics.contentType).toMatch(/^text\/plain; version=0\.0\.4/);
});

it("has the process's own figures where they are wanted, and nothing else where not", async () => {
  expect(await createMetrics({ prefix: "toy_" }).text()).toContain("process_resident_memory_bytes");
  expect((await createMetrics({ prefix: "toy_", processMetrics: false }).text()).trim()).toBe("");
});

it("two of them in one process do not meet", async () => {
  const [one, two] = [0, 1].map(() => createMetrics({ prefix: "toy_", processMetrics: false }));
  one?.counter("runs_total", "Runs.").inc();
  two?.counter("runs_total", "Runs.");
  expect(await one?.text()).toContain("toy_runs_total 1");
  expect(await two?.text()).toContain("toy_runs_total 0");
});

it("refuses a name that breaks the rule", () => {
  const metrics = createMetrics({ prefix: "toy_", processMetrics: false });
  expect(() => metrics.counter("requests", "x")).toThrow(MetricNameError);
});
