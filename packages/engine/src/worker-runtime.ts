// Reads the module that runs inside workerd. It is a file of its own and not text in this package's code, so that it can be
// read, formatted and checked as what it is; the build copies it beside the bundle.
import { readFile } from "node:fs/promises";

const location = new URL("./worker/runtime.js", import.meta.url);
let text: Promise<string> | undefined;

/** The text of the runtime module. */
export function readWorkerRuntime(): Promise<string> {
  text ??= readFile(location, "utf8");
  return text;
}
