// `npm run check`: lint and format, types, layers, purity of cores, unused code, versions.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { layerBreaches } from "./layers.ts";
import { run, runSteps } from "./processes.ts";
import { packages, root } from "./workspace.ts";

/** Biome cannot name a member of a global, so this looks for random numbers in the pure cores. */
function impureCores(): string[] {
  return packages().flatMap(({ path }) => {
    let files: string[];
    try {
      files = readdirSync(join(path, "src", "core"), { recursive: true, encoding: "utf8" });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw error;
    }
    return files
      .filter((file) => file.endsWith(".ts"))
      .map((file) => join(path, "src", "core", file))
      .filter((file) => readFileSync(file, "utf8").includes("Math.random"))
      .map((file) => `${file.slice(root.length)} uses Math.random: hand the number in`);
  });
}

function report(problems: string[]): number {
  for (const problem of problems) console.error(problem);
  return problems.length === 0 ? 0 : 1;
}

await runSteps([
  [
    "lint and format",
    () => run("biome", ["ci", "--colors=off", "--error-on-warnings", "--max-diagnostics=50"]),
  ],
  ["types", () => run("tsc", ["-b"])],
  ["layers", async () => report(layerBreaches(packages()))],
  ["pure cores", async () => report(impureCores())],
  ["unused code (knip)", () => run("knip", ["--no-progress", "--no-config-hints"])],
  ["versions (sherif)", () => run("sherif", [])],
]);
