// How many files and sockets this process may have open, against how many connections it is told to take.
import { readFile } from "node:fs/promises";

/** What is open besides connections of callers: those to dispatchers, the ledger, the internal listener. */
const otherCount = 2_200;

/** The limit in the text of Linux's `/proc/self/limits`; undefined where there is none. */
export function parseOpenFileLimit(limits: string): number | undefined {
  const [, soft] = /^Max open files\s+(\d+)/m.exec(limits) ?? [];
  return soft === undefined ? undefined : Number(soft);
}

/** What to tell the operator, or undefined where all connections have room. */
export function openFilesProblem(limit: number | undefined, maxConnections: number): string | undefined {
  if (limit === undefined || limit >= maxConnections + otherCount) return undefined;
  return `this process may have ${limit} files open, fewer than --max-connections ${maxConnections} and ${otherCount} for dispatchers and the ledger need: raise the limit (ulimit -n), or lower --max-connections`;
}

/** The limit of this process; undefined on systems that tell it otherwise. Never rejects. */
export function openFileLimit(): Promise<number | undefined> {
  return readFile("/proc/self/limits", "utf8").then(parseOpenFileLimit, () => undefined);
}
