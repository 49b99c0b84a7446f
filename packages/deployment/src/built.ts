/** What both ways of making modules share: a run of esbuild, its messages and its result. */
import { join, resolve } from "node:path";
import type { BuildOptions, Message, Metafile, OutputFile } from "esbuild";
import type { Module } from "./core/modules.ts";
import { BundleError } from "./errors.ts";
import type { Project } from "./project.ts";
import { regularFiles } from "./regular-file.ts";

/** The modules of a Worker, before they have a manifest. */
export interface Built {
  readonly mainModule: string;
  readonly modules: readonly Module[];
  /** Names that the main module exports. */
  readonly exports: readonly string[];
  /** Absolute paths of what was read, without files of packages. */
  readonly inputs: readonly string[];
  readonly warnings: readonly string[];
}

/** What a run of esbuild says about a Worker. */
export interface EsbuildRun {
  /** The one output file. */
  readonly output: OutputFile;
  readonly exports: readonly string[];
  /** Absolute paths of all files that esbuild read. */
  readonly files: readonly string[];
  readonly warnings: readonly string[];
}

/** The name of esbuild's one output, which is never written. */
const outfile = "index.js";

/** One message of esbuild as a line: `src/worker.ts:3:7 what is wrong`. */
function line({ location, text }: Message): string {
  return location === null ? text : `${location.file}:${location.line}:${location.column + 1} ${text}`;
}

/** Runs esbuild on the project's main file, in memory, into one ES module. */
export async function runEsbuild(project: Project, options: BuildOptions): Promise<EsbuildRun> {
  const { config, directory } = project;
  // Loaded only here: a node reads deployments and never makes one.
  const { build } = await import("esbuild");
  let metafile: Metafile | undefined;
  let files: OutputFile[] | undefined;
  let warnings: Message[];
  try {
    ({
      metafile,
      outputFiles: files,
      warnings,
    } = await build({
      absWorkingDir: directory,
      entryPoints: [resolve(directory, config.main)],
      bundle: true,
      format: "esm",
      target: "es2024",
      outfile,
      ...options,
      plugins: [regularFiles(directory), ...(options.plugins ?? [])],
      write: false,
      metafile: true,
      logLevel: "silent",
    }));
  } catch (error) {
    const messages = (error as { errors?: Message[] }).errors ?? [];
    const problems = messages.length > 0 ? messages.map(line) : [(error as Error).message];
    throw new BundleError(config.name, problems, { cause: error });
  }
  const [output] = files ?? [];
  const meta = metafile?.outputs[outfile];
  if (output === undefined || meta === undefined) {
    throw new BundleError(config.name, [`${config.main} gave no JavaScript`]);
  }
  return {
    output,
    exports: meta.exports,
    files: Object.keys(metafile?.inputs ?? {})
      .filter((path) => !/^[a-z-]+:/.test(path))
      .map((path) => join(directory, path)),
    warnings: warnings.map(line),
  };
}

/** The files that a person edits: no packages. */
export function withoutPackages(files: Iterable<string>): string[] {
  return [...files].filter((path) => !/[\\/]node_modules[\\/]/.test(path));
}
