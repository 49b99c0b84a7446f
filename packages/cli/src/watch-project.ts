// Changes of a project's files, one event for a burst of them.
import { watch } from "node:fs/promises";
import { sep } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const ignored = new Set([".cellkit", ".git", ".wrangler", "node_modules", "dist"]);
const quietMs = 150;

/**
 * Yields the name of a changed file each time the project has changed and been quiet for 150 ms. Changes that come
 * while the consumer works are kept, as one. Ends when the signal is aborted.
 */
export async function* watchProject(directory: string, signal: AbortSignal): AsyncGenerator<string> {
  let changed: string | undefined;
  let wake = () => {};
  const watching = (async () => {
    for await (const { filename } of watch(directory, { recursive: true, signal })) {
      if (filename === null || filename.split(sep).some((part) => ignored.has(part))) continue;
      changed = filename;
      wake();
    }
  })().catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  const stopped = new Promise<void>((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true }),
  );
  while (!signal.aborted) {
    if (changed === undefined) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      await Promise.race([woken, stopped, watching]);
      continue;
    }
    const seen = changed;
    changed = undefined;
    await pause(quietMs);
    if (changed === undefined) yield seen;
  }
  await watching;
}
