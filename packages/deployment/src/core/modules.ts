/** Modules of a Worker, and the text that names a set of them. */
import { createHash } from "node:crypto";

/**
 * What a module is to the runtime: an ES module; WebAssembly (imported as a `WebAssembly.Module`); text (imported as a
 * string); data (imported as an `ArrayBuffer`).
 */
export type ModuleKind = "esm" | "wasm" | "text" | "data";

/** One module, whole. */
export interface Module {
  /** A relative path, unique in its deployment; imports between modules are relative to it. */
  readonly name: string;
  readonly kind: ModuleKind;
  readonly bytes: Uint8Array;
}

/** The kind of a file that is kept as a module of its own, by the end of its name: Wrangler's default rules. */
export function kindOfFile(path: string): Exclude<ModuleKind, "esm"> | undefined {
  if (path.endsWith(".wasm")) return "wasm";
  if (/\.(txt|html|sql)$/.test(path)) return "text";
  if (path.endsWith(".bin")) return "data";
  return undefined;
}

/** The first 16 hexadecimal digits of the SHA-256 of a module's bytes, as the manifest has it. */
export function moduleDigest(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 16);
}

/** Two names in the order of their UTF-16 code units, whatever the locale. */
function byName(one: { name: string }, other: { name: string }): number {
  return one.name < other.name ? -1 : one.name > other.name ? 1 : 0;
}

/** The modules in name order, the order of the manifest and of the version text. */
export function inNameOrder<T extends { name: string }>(modules: readonly T[]): T[] {
  return [...modules].sort(byName);
}

/**
 * The version text of a deployment: the first 16 hexadecimal digits of a SHA-256 over each module in name order (name,
 * a zero byte, bytes) and then the metadata's JSON text. The same modules and metadata always have the same version, in
 * whatever order they are handed in.
 */
export function versionOf(modules: readonly Pick<Module, "name" | "bytes">[], metadataJson: string): string {
  const hash = createHash("sha256");
  for (const { name, bytes } of inNameOrder(modules)) hash.update(name).update("\0").update(bytes);
  return hash.update(metadataJson).digest("hex").slice(0, 16);
}
