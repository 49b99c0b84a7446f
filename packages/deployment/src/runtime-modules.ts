/** Modules that the runtime has: `cloudflare:*`, `workerd:*`, and Node's behind a compatibility flag. */
import { builtinModules } from "node:module";
import type { OnResolveArgs, OnResolveResult, Plugin } from "esbuild";
import { type Compatibility, flagAdvice, mayImport } from "./core/node-compat.ts";

const requireNamespace = "node-by-require";

/** Node's modules that may be named without the prefix (`node:test` and a few others may not). */
const bareNames = builtinModules.filter((name) => !name.startsWith("node:") && !name.startsWith("_"));

/** Node's own name for what was imported, or undefined for anything else. */
function nodeName(path: string): string | undefined {
  if (path.startsWith("node:")) return path;
  return bareNames.includes(path) ? `node:${path}` : undefined;
}

function refer(name: string, args: OnResolveArgs, compatibility: Compatibility): OnResolveResult {
  if (mayImport(name, compatibility)) {
    // In an ES module there is no require: it becomes an import of a small module that hands on the default export.
    return args.kind === "require-call"
      ? { path: name, namespace: requireNamespace }
      : { path: name, external: true };
  }
  // Packages guard a dynamic import or a require with try and catch; a static import cannot be guarded.
  const advice = flagAdvice(name);
  const external = { path: name, external: true };
  return args.kind === "import-statement"
    ? { errors: [{ text: advice }] }
    : { ...external, warnings: [{ text: advice }] };
}

/** @param compatibility decides which of Node's modules there are */
export function runtimeModules(compatibility: Compatibility): Plugin {
  return {
    name: "runtime-modules",
    setup(build) {
      build.onResolve({ filter: /^(cloudflare|workerd):/ }, ({ path }) => ({ path, external: true }));
      build.onResolve({ filter: /^(node:)?[a-z0-9_/]+$/ }, async (args) => {
        if (args.namespace === requireNamespace) return { path: args.path, external: true };
        const name = nodeName(args.path);
        if (name === undefined || args.pluginData === requireNamespace) return undefined;
        if (args.path !== name && !mayImport(name, compatibility)) {
          // Without the flag, `events` may be a package that is installed.
          const { importer, kind, resolveDir } = args;
          const found = await build.resolve(args.path, {
            importer,
            kind,
            resolveDir,
            pluginData: requireNamespace,
          });
          if (found.errors.length === 0) return { path: found.path, sideEffects: found.sideEffects };
        }
        return refer(name, args, compatibility);
      });
      build.onLoad({ filter: /.*/, namespace: requireNamespace }, ({ path }) => ({
        contents: `import builtin from ${JSON.stringify(path)}; module.exports = builtin;`,
        loader: "js",
      }));
    },
  };
}
