import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { chartDirectory, helm, template, userValues } from "./support/helm.ts";

interface Schema {
  properties?: Record<string, Schema>;
  $ref?: string;
  definitions?: Record<string, Schema>;
}
const schema = JSON.parse(readFileSync(join(chartDirectory, "values.schema.json"), "utf8")) as Schema;
const defaults = parse(readFileSync(join(chartDirectory, "values.yaml"), "utf8")) as object;
/** In the schema, so that they can be refused with a reason, and not in values.yaml. */
const notOffered = ["bootstrap", "dispatcher", "fleet", "mediation"];

describe.skipIf(helm === undefined)("values.schema.json", () => {
  it.concurrent.each([
    [
      "a misspelt value",
      { celln: { router: { backend: [] } } },
      "additional properties 'backend' not allowed",
    ],
    ["a value beside celln", { cellm: {} }, "additional properties 'cellm' not allowed"],
    ["a flag in quotes", { celln: { enabled: "true" } }, "/celln/enabled': got string, want boolean"],
    [
      "half a replica",
      { celln: { router: { replicas: 1.5 } } },
      "/celln/router/replicas': got number, want integer",
    ],
    ["replicas below zero", { celln: { router: { replicas: -1 } } }, "minimum"],
    ["dispatchers as one text", { celln: { router: { backends: "http://a" } } }, "got string, want array"],
    ["an unknown mode", { celln: { router: { mode: "least-busy" } } }, "value must be one of"],
    [
      "an image in one text",
      { celln: { router: { image: "registry.example/x:1" } } },
      "got string, want object",
    ],
    ["no value where there must be one", { celln: { routerUrl: null } }, "missing property 'routerUrl'"],
    [
      "a reader of metrics from anywhere",
      { celln: { router: { metricsPeers: [{ podLabels: { a: "b" } }] } } },
      "missing property 'namespace'",
    ],
    [
      "a whole namespace that reads metrics",
      { celln: { router: { metricsPeers: [{ namespace: "monitoring", podLabels: {} }] } } },
      "minProperties",
    ],
  ])("refuses %s", async (_, values, says) => {
    const { code, stderr } = await template(userValues(values));
    expect(code).not.toBe(0);
    expect(stderr).toContain(says);
  });

  it("and the table of the README have the same names", () => {
    const readme = readFileSync(join(chartDirectory, "README.md"), "utf8");
    const [, table = ""] = /\n## Values\n([\s\S]*?)\n## /.exec(readme) ?? [];
    const documented = [...table.matchAll(/^\| `([^|]+)` +\|/gm)].flatMap(([, names = ""]) =>
      names.split("`, `"),
    );
    const offered = namesIn(defaults).map((name) =>
      name.replace("celln.", "").replace(/(resources)\..*/, "$1"),
    );
    expect(documented.sort()).toEqual([...new Set(offered)].filter((name) => name !== "installer.enabled"));
  });

  it("and values.yaml have the same names", () => {
    expect(namesIn(defaults)).toEqual(
      namesOf(schema).filter((name) => !notOffered.includes(name.split(".")[1] ?? "")),
    );
  });
});

/** Each name down to the leaves, sorted. */
function namesOf(part: Schema, prefix = ""): string[] {
  const resolved = part.$ref === undefined ? part : (schema.definitions?.[part.$ref.slice(14)] ?? part);
  const entries = Object.entries(resolved.properties ?? {});
  if (entries.length === 0) return [prefix];
  return entries
    .flatMap(([key, child]) => namesOf(child, prefix === "" ? key : `${prefix}.${key}`))
    .filter((name) => name !== "global" && name !== "celln.router.parentTokenSecret")
    .sort();
}

/** The same of values. Requests and limits are the cluster's to name. */
function namesIn(part: unknown, prefix = ""): string[] {
  if (/resources\.\w+$/.test(prefix)) return [prefix];
  if (typeof part !== "object" || part === null || Array.isArray(part)) return [prefix];
  const entries = Object.entries(part);
  if (entries.length === 0) return [prefix];
  return entries.flatMap(([key, child]) => namesIn(child, prefix === "" ? key : `${prefix}.${key}`)).sort();
}
