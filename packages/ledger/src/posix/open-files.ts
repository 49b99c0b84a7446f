/** How many files may be open at once. */
import { readFile } from "node:fs/promises";

/** What is assumed where nothing tells: the least that systems start programs with. */
const UNKNOWN_LIMIT_COUNT = 256;

/** The limit of this process (`ulimit -n`), as Linux tells it. Node has raised it to the hard one at its start. */
export async function openFileLimit(): Promise<number> {
  const limits = await readFile("/proc/self/limits", "utf8").catch(() => "");
  const soft = /^Max open files +([0-9]+|unlimited)/m.exec(limits)?.[1];
  if (soft === undefined) return UNKNOWN_LIMIT_COUNT;
  return soft === "unlimited" ? Number.POSITIVE_INFINITY : Number(soft);
}
