// The house's rule: an import points down, never up and never sideways, but for what this table names.
import type { Package } from "./workspace.ts";

/** Which of our packages each package may depend on at run time (docs/architecture.md has the picture). */
export const allowed: Readonly<Record<string, readonly string[]>> = {
  bucket: [],
  splice: [],
  peer: [],
  client: [],
  execution: [],
  deployment: ["bucket"],
  ledger: ["bucket"],
  daemon: [],
  testing: ["execution", "splice"],
  engine: ["bucket", "splice", "deployment"],
  celld: ["bucket", "splice", "peer", "deployment", "engine", "daemon"],
  edge: ["daemon"],
  router: ["execution", "ledger", "bucket", "daemon"],
  cli: [
    "bucket",
    "splice",
    "peer",
    "client",
    "execution",
    "deployment",
    "ledger",
    "engine",
    "daemon",
    "celld",
    "router",
  ],
};

/** The folder name of one of our packages, or undefined for a foreign one. */
export function folderOf(name: string): string | undefined {
  if (name === "cellkit") return "cli";
  return name.startsWith("@cellkit/") ? name.slice("@cellkit/".length) : undefined;
}

/** Every breach of the table, one sentence each. */
export function layerBreaches(packages: readonly Package[]): string[] {
  const breaches: string[] = [];
  for (const { folder, manifest } of packages) {
    const may = allowed[folder];
    if (may === undefined) {
      breaches.push(`packages/${folder} has no row in tools/layers.ts: add it to its layer`);
      continue;
    }
    const declared = {
      ...manifest.dependencies,
      ...manifest.peerDependencies,
      ...manifest.optionalDependencies,
    };
    for (const name of Object.keys(declared)) {
      const target = folderOf(name);
      if (target !== undefined && !may.includes(target)) {
        breaches.push(
          `${manifest.name} may not depend on ${name}: allowed are ${may.join(", ") || "none of ours"}`,
        );
      }
    }
  }
  return breaches;
}
