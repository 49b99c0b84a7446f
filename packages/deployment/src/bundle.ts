/** From a project directory to modules and a manifest. */
import { buildModules } from "./build-modules.ts";
import type { Built } from "./built.ts";
import { maxManifestBytes, maxModuleBytes, maxModuleCount, maxTotalBytes } from "./core/limits.ts";
import type { Manifest } from "./core/manifest.ts";
import { manifestOf } from "./core/metadata.ts";
import type { Module } from "./core/modules.ts";
import { BundleError } from "./errors.ts";
import { type Project, readProject } from "./project.ts";
import { readyModules } from "./ready-modules.ts";

/** A Worker that can be published. */
export interface Bundle {
  readonly scriptName: string;
  /** 16 hexadecimal digits; the same for the same modules and metadata. */
  readonly version: string;
  readonly manifest: Manifest;
  readonly modules: readonly Module[];
  /** What was ignored or may fail at run time, one sentence each, to be shown once. */
  readonly warnings: readonly string[];
  /** Absolute paths of the files that went into it, the configuration first, without packages: what a watcher watches. */
  readonly inputs: readonly string[];
}

/** Options of {@link bundleProject}. */
export interface BundleOptions {
  /**
   * Conditions for the `exports` of packages, before `workerd`, `worker` and `browser`.
   * Wrangler's name for it is WRANGLER_BUILD_CONDITIONS.
   * @default []
   */
  readonly conditions?: readonly string[];
  /** Ends the waiting; what esbuild does by then is left to itself. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads a Wrangler project (`wrangler.jsonc` or `wrangler.json`), checks its configuration and bundles it the way
 * Wrangler does: one ES module `index.js`, and .wasm, .txt, .html, .sql and .bin files beside it. With `no_bundle` the
 * main file and what it imports by relative paths are taken as they are. Nothing is written to disk.
 *
 * @throws ProjectNotFoundError (`CELLKIT_DEPLOYMENT_NO_PROJECT`), WranglerConfigError (`CELLKIT_DEPLOYMENT_CONFIG`),
 * BundleError (`CELLKIT_DEPLOYMENT_BUNDLE`), the signal's reason
 * @see https://developers.cloudflare.com/workers/wrangler/bundling/
 */
export async function bundleProject(directory: string, options: BundleOptions = {}): Promise<Bundle> {
  const { conditions = [], signal } = options;
  if (signal === undefined) return await bundle(directory, conditions);
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort);
  try {
    return await Promise.race([bundle(directory, conditions), aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

async function bundle(directory: string, conditions: readonly string[]): Promise<Bundle> {
  const project = await readProject(directory);
  const { config } = project;
  const built = config.no_bundle ? await readyModules(project) : await buildModules(project, conditions);
  const manifest = manifestOf(config, built.mainModule, built.modules);
  const problems = [...missingExports(project, built), ...excesses(manifest)];
  if (problems.length > 0) throw new BundleError(config.name, problems);
  return {
    scriptName: config.name,
    version: manifest.version,
    manifest,
    modules: built.modules,
    warnings: [...project.warnings, ...built.warnings],
    inputs: [project.configFile, ...built.inputs],
  };
}

/** The classes that the configuration declares and the main module does not export. */
function missingExports({ config }: Project, { exports }: Built): string[] {
  if (exports.length === 0) {
    return [
      `${config.main} exports nothing: a Worker is an ES module with a default export or with exported classes`,
    ];
  }
  return config.migrations
    .flatMap(({ new_sqlite_classes }) => new_sqlite_classes)
    .filter((name) => !exports.includes(name))
    .map(
      (name) =>
        `${config.main} does not export the class ${name}, which wrangler's migrations declare: export it`,
    );
}

/** What is more than a deployment may hold. */
function excesses(manifest: Manifest): string[] {
  const { modules } = manifest;
  const problems = modules
    .filter(({ bytes }) => bytes > maxModuleBytes)
    .map(
      ({ name, bytes }) => `the module ${name} has ${bytes} bytes; a module has at most ${maxModuleBytes}`,
    );
  if (modules.length > maxModuleCount) {
    problems.push(`there are ${modules.length} modules; a deployment has at most ${maxModuleCount}`);
  }
  const total = modules.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total > maxTotalBytes) {
    problems.push(`the modules have ${total} bytes together; a deployment has at most ${maxTotalBytes}`);
  }
  const manifestBytes = Buffer.byteLength(JSON.stringify(manifest));
  if (manifestBytes > maxManifestBytes) {
    problems.push(
      `the manifest has ${manifestBytes} bytes, at most ${maxManifestBytes} are read: make vars smaller`,
    );
  }
  return problems;
}
