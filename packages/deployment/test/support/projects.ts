// Projects on disk for one test: written from a table of file names and contents, removed at its end.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";

/** The least that deploys: a Worker with one class of cells. */
export const smallWorker = `
import { DurableObject } from "cloudflare:workers";
export class Counter extends DurableObject {}
export default { fetch: () => new Response("hello") };
`;

/** The configuration of {@link smallWorker}, with some keys replaced. */
export function smallConfig(changes: Record<string, unknown> = {}): string {
  return JSON.stringify({
    name: "counter",
    main: "src/worker.js",
    compatibility_date: "2026-11-01",
    durable_objects: { bindings: [{ name: "COUNTERS", class_name: "Counter" }] },
    migrations: [{ tag: "v1", new_sqlite_classes: ["Counter"] }],
    ...changes,
  });
}

/** Writes the files and returns the directory. */
export async function project(files: Readonly<Record<string, string | Uint8Array>>): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "cellkit-deployment-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), content);
  }
  return directory;
}

/** The small Worker with some keys of its configuration replaced and some files more. */
export function smallProject(
  changes: Record<string, unknown> = {},
  files: Readonly<Record<string, string | Uint8Array>> = {},
): Promise<string> {
  return project({ "wrangler.json": smallConfig(changes), "src/worker.js": smallWorker, ...files });
}
