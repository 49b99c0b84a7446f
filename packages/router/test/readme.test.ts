import { readFileSync } from "node:fs";
import {
  addCertificateMetrics,
  type CertificateWatch,
  createMetrics,
  exitCodeMeanings,
  withOptionsTable,
} from "@cellkit/daemon";
import { expect, it } from "vitest";
import * as face from "../src/index.ts";

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");

it("its options table is the schema's", () => {
  expect(withOptionsTable(readme, face.routerOptions)).toBe(readme);
});

it("it names every exit code that a router can end with, and no other", () => {
  const codes = [...readme.matchAll(/^\| (\d) \|/gm)].map(([, code]) => code);
  // Nobody fences a router.
  expect(codes).toEqual(Object.keys(exitCodeMeanings).filter((code) => code.length === 1 && code !== "3"));
});

it("it names every error that this package throws", () => {
  const names = Object.entries(face)
    .filter(([, value]) => typeof value === "function" && value.prototype instanceof face.RouterError)
    .map(([name]) => name);
  const rows = [...readme.matchAll(/^\| `CELLKIT_ROUTER_[A-Z_]+` \| `(\w+)` \|/gm)].map(([, name]) => name);
  expect(rows.sort()).toEqual(names.sort());
});

it("the metrics to watch exist", async () => {
  const source = readFileSync(new URL("../src/router-metrics.ts", import.meta.url), "utf8");
  const ofCertificates = createMetrics({ prefix: "router_", processMetrics: false });
  const watch = { current: { validToMs: 0 }, problem: undefined, counts: { reloads: 0, failures: 0 } };
  addCertificateMetrics(ofCertificates, watch as unknown as CertificateWatch);
  const text = await ofCertificates.text();
  const named = [...readme.matchAll(/`router_([a-z_]+)/g)].flatMap(([, name]) => name ?? []);
  for (const name of named) {
    if (name.startsWith("certificate_")) expect(text).toContain(`# TYPE router_${name} `);
    else expect(source).toContain(`"${name}"`);
  }
});

it.each([
  ["../README.md", ["router-check", "router-reconcile", "rotate", "qualify-executions", "qualify-ledger"]],
  ["../chart/README.md", ["router-check", "router-reconcile", "rotate", "qualify-executions"]],
  ["../../../docs/run-executions.md", ["router-check", "router-reconcile", "rotate", "qualify-executions"]],
])("%s leads to the commands that an operator of routers needs", (path, commands) => {
  const text = readFileSync(new URL(path, import.meta.url), "utf8");
  for (const command of commands) expect(text).toContain(`cli/README.md#cellkit-${command})`);
});
