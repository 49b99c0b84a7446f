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

it("asks for a count that is kept elsewhere before each read", async () => {
  const metrics = createMetrics({ prefix: "toy_", processMetrics: false });
  let drops = 0;
  metrics.counter("drops_total", "Drops.", [], { count: () => drops });
  expect(await metrics.text()).toMatch(/^toy_drops_total 0$/m);
  drops = 3;
  for (let read = 0; read < 2; read += 1) expect(await metrics.text()).toMatch(/^toy_drops_total 3$/m);
});

it("has the process's own figures where they are wanted, and nothing else where not", async () => {
  expect(await createMetrics({ prefix: "toy_" }).text()).toContain("process_resident_memory_bytes");
  expect((await createMetrics({ prefix: "toy_", processMetrics: false }).text()).trim()).toBe("");
});

it("its first scrape has the CPU time of the whole process, and no figure that is none", async () => {
  const before = process.cpuUsage();
  const metrics = createMetrics({ prefix: "toy_", labels: { node: "n1" } });
  for (const scrape of ["first", "at once again"]) {
    const values = new Map(
      (await metrics.text())
        .split("\n")
        .filter((line) => line !== "" && !line.startsWith("#"))
        .map((line) => [line.replace(/\{.*/, ""), Number(line.slice(line.lastIndexOf(" ")))] as const),
    );
    const cpu = ["user_", "system_", ""].map((part) => values.get(`process_cpu_${part}seconds_total`) ?? -1);
    const [user = -1, system = -1, both = -1] = cpu;
    expect(user, scrape).toBeGreaterThanOrEqual(before.user / 1e6);
    expect(system, scrape).toBeGreaterThanOrEqual(before.system / 1e6);
    // All three are asked for one after the other, and both parts only grow.
    expect(Math.round(both * 1e6), scrape).toBeGreaterThanOrEqual(Math.round((user + system) * 1e6));
    const after = process.cpuUsage();
    expect(both, scrape).toBeLessThanOrEqual((after.user + after.system) / 1e6);
    const lags = [...values].filter(([name]) => name.startsWith("nodejs_eventloop_lag_"));
    expect(lags.length, scrape).toBeGreaterThan(1);
    for (const [name, value] of lags) expect(value, `${name}, ${scrape}`).toBeLessThan(1_000);
  }
});

it("tells of the event loop once there is something to tell", async () => {
  const metrics = createMetrics({ prefix: "toy_" });
  let text = "";
  await expect
    .poll(
      async () => {
        text = await metrics.text();
        return text;
      },
      { interval: 50, timeout: 30_000 },
    )
    .toMatch(/^nodejs_eventloop_lag_min_seconds \d+\.\d+$/m);
  expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds \d+\.\d+$/m);
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
