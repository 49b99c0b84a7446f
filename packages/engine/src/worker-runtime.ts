// Reads the modules that run inside workerd. They are files of their own and not text in this package's code, so that they
// can be read, formatted and checked as what they are; the build copies them beside the bundle.
import { readFile } from "node:fs/promises";
import type { WorkerRuntime } from "./core/workerd-config.ts";

const read = (name: string) => readFile(new URL(`./worker/${name}`, import.meta.url), "utf8");
let texts: Promise<WorkerRuntime> | undefined;

/** The texts of the modules. */
export function readWorkerRuntime(): Promise<WorkerRuntime> {
  texts ??= Promise.all([read("runtime.js"), read("peer.js")]).then(([runtime, peer]) => ({ runtime, peer }));
  return texts;
}
