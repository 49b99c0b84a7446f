import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { JournalError, RanTwiceError, TestingOptionError } from "../errors.ts";

export const runsFile = "runs.jsonl";

/**
 * How often each execution was started by a dispatcher that journals in this directory, over all its lives. Reads what a
 * killed process left behind, too; a last line that was not written whole counts as no start.
 *
 * @throws {@link JournalError} (`CELLKIT_TESTING_JOURNAL`)
 */
export async function readRuns(journal: string): Promise<ReadonlyMap<string, number>> {
  const path = join(journal, runsFile);
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw new JournalError(path, "cannot be read", { cause });
  });
  const runs = new Map<string, number>();
  for (const line of text.split("\n").slice(0, -1)) {
    const id = idIn(line, path);
    runs.set(id, (runs.get(id) ?? 0) + 1);
  }
  return runs;
}

function idIn(line: string, path: string): string {
  try {
    const { id } = JSON.parse(line) as { id: unknown };
    if (typeof id === "string") return id;
  } catch {
    // The same as any other line that names no id.
  }
  throw new JournalError(path, "has a line that is no start of an execution");
}

/**
 * The starts of several dispatchers together, each id with all its starts. Of a dispatcher in a process of its own, give
 * `await it.runs()`, or what {@link readRuns} read.
 *
 * @throws {@link TestingOptionError} (`CELLKIT_TESTING_OPTION`) when something has no starts to count
 * @throws {@link RanTwiceError} (`CELLKIT_TESTING_RAN_TWICE`) when one ran more than once, wherever that was.
 */
export function ranAtMostOnce(
  ...runs: readonly (ReadonlyMap<string, number> | { readonly runs: ReadonlyMap<string, number> })[]
): ReadonlyMap<string, number> {
  const all = new Map<string, number>();
  for (const each of runs) {
    for (const [id, count] of startsOf(each)) all.set(id, (all.get(id) ?? 0) + count);
  }
  const twice = new Map([...all].filter(([, count]) => count > 1));
  if (twice.size > 0) throw new RanTwiceError(twice);
  return all;
}

function startsOf(
  each: ReadonlyMap<string, number> | { readonly runs: ReadonlyMap<string, number> },
): ReadonlyMap<string, number> {
  const starts: unknown = "runs" in each ? each.runs : each;
  if (starts instanceof Map) return starts;
  throw new TestingOptionError(
    "runs",
    typeof starts === "function"
      ? "of a dispatcher in a process of its own are read from its journal: give ranAtMostOnce(await it.runs())"
      : "is no map; give a dispatcher, or what readRuns() read",
  );
}
