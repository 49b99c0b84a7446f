/** `no_bundle`: the main file and everything that it imports by relative paths, taken byte for byte. */
import { readFile, stat } from "node:fs/promises";
import { dirname, relative, resolve, sep } from "node:path";
import type { OnResolveArgs, OnResolveResult, Plugin, PluginBuild } from "esbuild";
import { type Built, runEsbuild } from "./built.ts";
import { kindOfFile, type Module } from "./core/modules.ts";
import { moduleName } from "./core/names.ts";
import { BundleError } from "./errors.ts";
import type { Project } from "./project.ts";
import { notAFile } from "./regular-file.ts";
import { runtimeModules } from "./runtime-modules.ts";

/** Marks a resolution that the plugin itself asked for. */
const own = Symbol("ready-modules");

/** Whether the file is JavaScript that the runtime takes as it is. */
function isScript(path: string): boolean {
  return path.endsWith(".js") || path.endsWith(".mjs");
}

/** Refuses what a runtime without a bundler cannot find, and keeps esbuild from reading files that are not JavaScript. */
function asTheyAre(others: Set<string>): Plugin {
  async function find(build: PluginBuild, args: OnResolveArgs): Promise<OnResolveResult | undefined> {
    if (args.pluginData === own || args.kind === "entry-point") return undefined;
    if (args.kind !== "import-statement" && args.kind !== "dynamic-import") {
      return {
        errors: [{ text: `${args.path} is not loaded by import, and no_bundle takes ES modules only` }],
      };
    }
    if (!/^\.\.?\//.test(args.path)) {
      return {
        errors: [{ text: `${args.path} is a package, and no_bundle takes only relative imports: bundle it` }],
      };
    }
    const { importer, kind, resolveDir } = args;
    const { errors, path } = await build.resolve(args.path, { importer, kind, resolveDir, pluginData: own });
    if (errors.length > 0) return { errors };
    if (isScript(path)) return { path };
    if (kindOfFile(path) === undefined) {
      return { errors: [{ text: `${args.path} is neither .js, .mjs, .wasm, .txt, .html, .sql nor .bin` }] };
    }
    const problem = notAFile(args.path, await stat(path));
    if (problem !== undefined) return { errors: [{ text: problem }] };
    others.add(path);
    return { path, external: true };
  }
  return {
    name: "ready-modules",
    setup(build) {
      build.onResolve({ filter: /.*/ }, (args) => find(build, args));
    },
  };
}

/** Names are paths from the folder of the main file, as its imports have them. */
export async function readyModules(project: Project): Promise<Built> {
  const { config, directory } = project;
  const main = resolve(directory, config.main);
  if (!isScript(main)) {
    throw new BundleError(config.name, [`with no_bundle, main is a .js or .mjs file, not ${config.main}`]);
  }
  const others = new Set<string>();
  const run = await runEsbuild(project, {
    resolveExtensions: [],
    tsconfigRaw: {},
    plugins: [runtimeModules(config), asTheyAre(others)],
  });
  const folder = dirname(main);
  const paths = [...new Set([main, ...run.files, ...others])];
  const named = paths.map((path) => ({ path, name: relative(folder, path).split(sep).join("/") }));
  const problems = named.flatMap(({ name }) => {
    const checked = moduleName.safeParse(name);
    return checked.success ? [] : [`${name} cannot be a module's name: ${checked.error.issues[0]?.message}`];
  });
  if (problems.length > 0) throw new BundleError(config.name, problems);
  const modules = await Promise.all(
    named.map(
      async ({ path, name }): Promise<Module> => ({
        name,
        kind: kindOfFile(path) ?? "esm",
        bytes: await readFile(path),
      }),
    ),
  );
  return {
    mainModule: relative(folder, main),
    modules,
    exports: run.exports,
    inputs: paths,
    warnings: run.warnings,
  };
}
