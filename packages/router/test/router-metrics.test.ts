import { readFileSync } from "node:fs";
import { addCertificateMetrics, type CertificateWatch } from "@cellkit/daemon";
import { expect, it } from "vitest";
import { CapacityWatch } from "../src/capacity-watch.ts";
import type { Mismatch } from "../src/fingerprint/fingerprint.ts";
import type { ReplicaWatch } from "../src/fingerprint/replica-watch.ts";
import { CredentialError } from "../src/index.ts";
import { createRouterMetrics, nodeLabel, type RouterMetricsSources } from "../src/router-metrics.ts";

const quiet: RouterMetricsSources = {
  version: "1.0.0",
  backends: { origins: async () => [] },
  counts: () => undefined,
  capacity: () => undefined,
  replicas: () => undefined,
};
const none = { code: undefined, problem: undefined, cause: undefined };

it("a node's name in a metric is cut, and has printable ASCII alone", () => {
  expect(nodeLabel("node-1 of rack B")).toBe("node-1 of rack B");
  expect(nodeLabel("a\n\u0000\u00e9\u202eb")).toBe("a????b");
  expect(nodeLabel("x".repeat(65_000))).toBe("x".repeat(64));
});

/** What the README tells operators to watch. */
function watched(): readonly string[] {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const rows = readme.match(/^\| `router_.*$/gm) ?? [];
  const names = rows.flatMap((row) => [...row.slice(0, row.indexOf(" | ")).matchAll(/`(router_[a-z_]+)/g)]);
  return names.flatMap(([, name]) => name ?? []);
}

it("every metric that the README tells to watch is moved by what it is for", async () => {
  const backend = "http://a:8787";
  const mismatches: Mismatch[] = [{ replica: "two", part: "client" }];
  const capacity = new CapacityWatch(10, () => undefined);
  const { hear, metrics } = createRouterMetrics({
    ...quiet,
    backends: { origins: async () => [backend] },
    counts: () => ({ connections: 3, running: 2, waiting: 1 }),
    capacity: () => capacity,
    replicas: () => ({ mismatches, replicaCount: 2, isFailing: false }) as unknown as ReplicaWatch,
  });
  const zero = async (name: string) =>
    !new RegExp(`^${name}(\\{.*\\})? [1-9]`, "m").test(await metrics.text());
  const certificate = {
    current: { validToMs: 1_000 },
    problem: "expired",
    counts: { reloads: 1, failures: 1 },
  };
  addCertificateMetrics(metrics, certificate as unknown as CertificateWatch);
  const before = watched();
  expect(before.length).toBeGreaterThan(9);
  capacity.see(4);
  hear({ kind: "uncertain", backend });
  hear({ kind: "claim", result: "failed", ...none, durationMs: 1 });
  hear({ kind: "lookup", result: "failed", ...none, durationMs: 1 });
  hear({ kind: "credentials", error: new CredentialError("client", "is gone") });
  hear({ kind: "health", backend, healthy: true, node: undefined });
  hear({ kind: "defect", error: new TypeError("x") });
  const unmoved: string[] = [];
  for (const name of before) if (await zero(name)) unmoved.push(name);
  expect(unmoved).toEqual([]);
});

it("dispatchers that left the list are healthy no more, and the longest gone are forgotten", async () => {
  let listed: readonly string[] = [];
  const { hear, metrics } = createRouterMetrics({ ...quiet, backends: { origins: async () => listed } });
  const series = async (name: string) =>
    [...(await metrics.text()).matchAll(new RegExp(`^router_${name}\\{backend="http://([^"]+)"`, "gm"))].map(
      ([, backend]) => backend,
    );
  for (let pod = 0; pod < 150; pod += 1) {
    const backend = `http://pod-${pod}`;
    listed = [backend, "http://stays"];
    for (const each of listed) {
      hear({ kind: "placed", backend: each });
      hear({ kind: "uncertain", backend: each });
      hear({ kind: "backend", call: "read", backend: each, status: 200, problem: undefined, durationMs: 1 });
      hear({ kind: "health", backend: each, healthy: true, node: undefined });
    }
    if (pod % 10 === 9) await metrics.text();
  }
  expect((await series("backend_healthy")).sort()).toEqual(["pod-149", "stays"]);
  for (const name of ["placements_total", "uncertain_submissions_total", "backend_calls_total"]) {
    await metrics.text();
    const left = await series(name);
    expect(left).toHaveLength(102);
    expect(left).toContain("stays");
    expect(left).toContain("pod-149");
    expect(left).not.toContain("pod-0");
  }
});
