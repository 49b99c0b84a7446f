/** Several processes on one ledger at once, some of which are killed in the middle, and the history of them all. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { HistoryOperation } from "../../src/conformance/history.ts";
import { type HistoryLoad, runHistoryLoad } from "./history-load.ts";
import { type LedgerPlace, openAt } from "./open-at.ts";

export interface HistoryRun {
  place: LedgerPlace;
  load: HistoryLoad;
  /** Processes beside this one. */
  childCount: number;
  /** Each child is killed when it has made so many calls; undefined lets them live. */
  killAfterCount?: number | undefined;
  /** Where children keep what they compiled. */
  cacheDirectory: string;
}

/** Runs the load in this process and in the children, on the same ledger at once. */
export async function runHistoryProcesses(run: HistoryRun): Promise<HistoryOperation[]> {
  const { place, load } = run;
  const options = { retirable: load.retiring };
  const ledgers = [await openAt(place, options), await openAt(place, options)];
  onTestFinished(async () => {
    for (const ledger of ledgers) await ledger.close();
  });
  // Whoever is to be killed has work for much longer.
  const operationCount = load.operationCount * (run.killAfterCount === undefined ? 1 : 20);
  const children = Array.from({ length: run.childCount }, (_, index) =>
    startChild(run, { place, options, load: { ...load, operationCount, client: `child${index}` } }),
  );
  await Promise.all(children.map(({ ready }) => ready));
  for (const child of children) child.go();
  const histories = await Promise.all([
    runHistoryLoad(ledgers, load),
    ...children.map(({ history }) => history),
  ]);
  return histories.flat();
}

function startChild(
  { killAfterCount = Number.POSITIVE_INFINITY, cacheDirectory }: HistoryRun,
  task: unknown,
): { ready: Promise<void>; history: Promise<HistoryOperation[]>; go(): void } {
  const script = fileURLToPath(new URL("./history-child.ts", import.meta.url));
  const child = spawn(process.execPath, ["--conditions=@cellkit/source", script, JSON.stringify(task)], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, NODE_COMPILE_CACHE: join(cacheDirectory, "compiled") },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ready = Promise.withResolvers<void>();
  const operations = new Map<string, HistoryOperation>();
  let isDone = false;
  const lines = createInterface({ input: child.stdout });
  lines.on("line", (line) => {
    const value = JSON.parse(line) as "ready" | "done" | [string, HistoryOperation];
    if (value === "ready") ready.resolve();
    else if (value === "done") isDone = true;
    else operations.set(...value);
    if (operations.size >= killAfterCount) child.kill("SIGKILL");
  });
  const history = once(child, "close").then(() => {
    const isMeant = killAfterCount < Number.POSITIVE_INFINITY;
    if (!isDone && !isMeant) throw new TypeError("a child ended too early");
    return [...operations.values()];
  });
  history.catch(ready.reject);
  return { ready: ready.promise, history, go: () => child.stdin.write("\n") };
}
