/** A project bundled the way Wrangler does: one ES module, and the files that stay modules of their own. */
import { type Built, runEsbuild, withoutPackages } from "./built.ts";
import type { Module } from "./core/modules.ts";
import { KeptModules } from "./kept-modules.ts";
import type { Project } from "./project.ts";
import { runtimeModules } from "./runtime-modules.ts";

const mainModule = "index.js";

/** @param conditions come before those of the runtime when a package's `exports` are resolved */
export async function buildModules(project: Project, conditions: readonly string[]): Promise<Built> {
  const kept = new KeptModules();
  const { output, exports, files, warnings } = await runEsbuild(project, {
    conditions: [...conditions, "workerd", "worker", "browser"],
    // RPC and error messages show class names, which esbuild would otherwise change when two are equal.
    keepNames: true,
    loader: { ".js": "jsx", ".mjs": "jsx", ".cjs": "jsx" },
    define: { "process.env.NODE_ENV": '"production"' },
    plugins: [kept.plugin(), runtimeModules(project.config)],
  });
  const main: Module = { name: mainModule, kind: "esm", bytes: output.contents };
  return {
    mainModule,
    modules: [main, ...kept.modules()],
    exports,
    inputs: withoutPackages([...files, ...kept.files()]),
    warnings,
  };
}
