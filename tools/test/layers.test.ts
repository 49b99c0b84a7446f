import { describe, expect, it } from "vitest";
import { allowed, layerBreaches } from "../layers.ts";
import { type Manifest, type Package, packages } from "../workspace.ts";

function planted(folder: string, manifest: Partial<Manifest>): Package {
  const name = folder === "cli" ? "cellkit" : `@cellkit/${folder}`;
  return { folder, path: `packages/${folder}`, manifest: { name, ...manifest } };
}

it("this house has no breach", () => {
  expect(layerBreaches(packages())).toEqual([]);
});

it("every package of this house has a row, and every row its package", () => {
  expect(packages().map(({ folder }) => folder)).toEqual(Object.keys(allowed).sort());
});

describe("a planted breach is found", () => {
  it.each<[what: string, folder: string, manifest: Partial<Manifest>, breach: string]>([
    [
      "an import that points up",
      "bucket",
      { dependencies: { "@cellkit/engine": "workspace:*" } },
      "@cellkit/bucket may not depend on @cellkit/engine: allowed are none of ours",
    ],
    [
      "one that points sideways",
      "client",
      { dependencies: { "@cellkit/deployment": "workspace:*" } },
      "@cellkit/client may not depend on @cellkit/deployment: allowed are none of ours",
    ],
    [
      "one to the command, whose name has no scope",
      "daemon",
      { dependencies: { cellkit: "workspace:*" } },
      "@cellkit/daemon may not depend on cellkit: allowed are none of ours",
    ],
    [
      "one hidden among peers",
      "deployment",
      { peerDependencies: { "@cellkit/splice": "workspace:*" } },
      "@cellkit/deployment may not depend on @cellkit/splice: allowed are bucket",
    ],
    [
      "one hidden among optional ones",
      "splice",
      { optionalDependencies: { "@cellkit/bucket": "workspace:*" } },
      "@cellkit/splice may not depend on @cellkit/bucket: allowed are none of ours",
    ],
    [
      "a package without a row",
      "utils",
      {},
      "packages/utils has no row in tools/layers.ts: add it to its layer",
    ],
  ])("%s", (_, folder, manifest, breach) => {
    expect(layerBreaches([planted(folder, manifest)])).toEqual([breach]);
  });
});

it.each<[what: string, folder: string, manifest: Partial<Manifest>]>([
  ["an import that points down", "engine", { dependencies: { "@cellkit/bucket": "workspace:*" } }],
  ["one that skips a layer", "celld", { dependencies: { "@cellkit/splice": "workspace:*" } }],
  ["a package of others", "bucket", { dependencies: { zod: "catalog:" } }],
  ["a tool for tests", "bucket", { devDependencies: { "@cellkit/testing": "workspace:*" } }],
])("%s is no breach", (_, folder, manifest) => {
  expect(layerBreaches([planted(folder, manifest)])).toEqual([]);
});

it("the table itself has no cycle: what a package may use may not use it back", () => {
  const reachable = (folder: string, seen = new Set<string>()): Set<string> => {
    for (const next of allowed[folder] ?? []) {
      if (seen.has(next)) continue;
      seen.add(next);
      reachable(next, seen);
    }
    return seen;
  };
  expect(Object.keys(allowed).filter((folder) => reachable(folder).has(folder))).toEqual([]);
});
