/** Files that esbuild leaves alone: .wasm, .txt, .html, .sql and .bin stay modules of their own, as with Wrangler. */
import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { basename } from "node:path";
import type { OnResolveArgs, OnResolveResult, Plugin, PluginBuild } from "esbuild";
import { maxModuleBytes } from "./core/limits.ts";
import { kindOfFile, type Module } from "./core/modules.ts";
import { notAFile } from "./regular-file.ts";

/** Marks a resolution that this plugin itself asked for. */
const own = Symbol("kept-modules");

/** A name that no other file has: a digest of the content, then what the file is called. */
function uniqueName(path: string, bytes: Uint8Array): string {
  const digest = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  return `${digest}-${basename(path)
    .replace(/[^A-Za-z0-9_.-]/g, "_")
    .slice(-128)}`;
}

/** Collects the modules that imports lead to while esbuild runs. */
export class KeptModules {
  /** Under their names: files with the same name and content are one module. */
  readonly #modules = new Map<string, Module>();
  readonly #files = new Set<string>();

  /** The plugin that takes such files out of one run of esbuild. */
  plugin(): Plugin {
    return {
      name: "kept-modules",
      setup: (build) => {
        build.onResolve({ filter: /\.(wasm|txt|html|sql|bin)(\?module)?$/ }, (args) =>
          this.#keep(build, args),
        );
      },
    };
  }

  modules(): Module[] {
    return [...this.#modules.values()];
  }

  /** Absolute paths of the files that became modules. */
  files(): Iterable<string> {
    return this.#files;
  }

  async #keep(build: PluginBuild, args: OnResolveArgs): Promise<OnResolveResult | undefined> {
    if (args.pluginData === own) return undefined;
    const { importer, kind: importKind, resolveDir } = args;
    const specifier = args.path.replace(/\?module$/, "");
    const { errors, path } = await build.resolve(specifier, {
      importer,
      kind: importKind,
      resolveDir,
      pluginData: own,
    });
    if (errors.length > 0) return { errors };
    const kind = kindOfFile(path);
    if (kind === undefined) return undefined;
    if (importKind === "require-call") {
      return {
        errors: [{ text: `${specifier} is kept as a module of its own: use import instead of require` }],
      };
    }
    const stats = await stat(path);
    const problem = notAFile(specifier, stats);
    if (problem !== undefined) return { errors: [{ text: problem }] };
    const { size } = stats;
    if (size > maxModuleBytes) {
      return { errors: [{ text: `${specifier} has ${size} bytes; a module has at most ${maxModuleBytes}` }] };
    }
    const bytes = await readFile(path);
    const name = uniqueName(path, bytes);
    this.#modules.set(name, { name, kind, bytes });
    this.#files.add(path);
    return { path: `./${name}`, external: true };
  }
}
