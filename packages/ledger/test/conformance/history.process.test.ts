import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { checkClaimHistory } from "../../src/conformance/claim-history.ts";
import type { HistoryOperation } from "../../src/conformance/history.ts";
import type { StoredLedger } from "../../src/ledger.ts";
import { LedgerMemory, openMemoryLedger } from "../../src/memory-ledger.ts";
import { type HistoryLoad, runHistoryLoad } from "../support/history-load.ts";
import { runHistoryProcesses } from "../support/history-processes.ts";
import type { LedgerPlace } from "../support/open-at.ts";
import { plantedBugs } from "../support/planted-bugs.ts";
import { buildPorcupine, findGo, judgeHistory } from "../support/porcupine.ts";
import { PostgresServer } from "../support/postgres-server.ts";
import { randomHistories } from "../support/random-histories.ts";

const isLong = inject("size") === "long";
const CHILD_COUNT = isLong ? 3 : 1;
const load: HistoryLoad = {
  client: "parent",
  seed: inject("seed"),
  callerCount: 4,
  operationCount: isLong ? 400 : 60,
  retiring: false,
};

const go = findGo();
let directory = "";
let porcupine: string | undefined;
let postgres: PostgresServer | undefined;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "cellkit-ledger-"));
  if (go !== undefined) porcupine = await buildPorcupine(go, directory);
  else if (process.env["CI"] !== undefined) throw new TypeError("Go is missing: install it from go.dev/dl");
  else process.stdout.write("not run: judging histories with porcupine; install Go from go.dev/dl\n");
  postgres = await PostgresServer.start();
});
afterAll(async () => {
  await postgres?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

/** Retirements need the checker that searches. */
function canJudge(retiring: boolean): boolean {
  return !retiring || porcupine !== undefined;
}

/** The keys that any checker which can judge it objects to. */
async function objections(operations: readonly HistoryOperation[], retiring: boolean): Promise<string[]> {
  const ours = retiring ? [] : checkClaimHistory(operations).map(({ key }) => key);
  const theirs = porcupine === undefined ? ours : await judgeHistory(porcupine, operations);
  if (!retiring) expect(theirs.toSorted()).toEqual(ours.toSorted());
  return theirs;
}

function placeOf(store: LedgerPlace["store"], name: string): LedgerPlace | undefined {
  if (store === "postgres") return postgres && { store, name, url: postgres.url() };
  const path = join(directory, store);
  return { store, name, url: store === "bucket" ? pathToFileURL(path).href : path };
}

describe.each([
  { retiring: false, what: "that keeps its records for ever" },
  { retiring: true, what: "that retires and sweeps" },
])("histories of a ledger $what are linearizable", ({ retiring }) => {
  it("in memory, over several handles", async ({ skip }) => {
    if (!canJudge(retiring)) return skip();
    const memory = new LedgerMemory();
    const open = () => openMemoryLedger({ memory, retirable: retiring });
    const operations = await runHistoryLoad([await open(), await open()], { ...load, retiring });
    expect(await objections(operations, retiring)).toEqual([]);
  });

  it.for(["posix", "bucket", "postgres"] as const)("%s, over several processes", async (store, { skip }) => {
    const place = placeOf(store, retiring ? "retiring" : "kept");
    if (place === undefined || !canJudge(retiring)) return skip();
    const run = { place, load: { ...load, retiring }, childCount: CHILD_COUNT, cacheDirectory: directory };
    const operations = await runHistoryProcesses(run);
    expect(operations).toHaveLength((CHILD_COUNT + 1) * load.callerCount * load.operationCount);
    expect(operations.some(({ answer }) => answer === null || answer.kind === "maybe")).toBe(false);
    expect(await objections(operations, retiring)).toEqual([]);
  });

  it.for(["posix", "bucket", "postgres"] as const)(
    "%s, while processes are killed",
    async (store, { skip }) => {
      const place = placeOf(store, retiring ? "retiring-killed" : "kept-killed");
      if (place === undefined || !canJudge(retiring)) return skip();
      const operations = await runHistoryProcesses({
        place,
        load: { ...load, retiring },
        childCount: CHILD_COUNT,
        killAfterCount: load.operationCount,
        cacheDirectory: directory,
      });
      expect(operations.some(({ answer }) => answer === null)).toBe(true);
      expect(await objections(operations, retiring)).toEqual([]);
    },
  );
});

it.each(Object.keys(plantedBugs))("both checkers find a ledger that %s", async (bug) => {
  const ledger = await plantedBugs[bug]?.();
  const operations = await runHistoryLoad(ledger === undefined ? [] : [ledger], load);
  expect(await objections(operations, false)).not.toEqual([]);
  expect(checkClaimHistory(operations)).not.toEqual([]);
});

it("porcupine finds a ledger that forgets, also where ids are retired", async ({ skip }) => {
  if (porcupine === undefined) return skip();
  const ledger = (await plantedBugs["forgets what it recorded"]?.()) as StoredLedger;
  const operations = await runHistoryLoad([ledger], { ...load, retiring: true });
  expect(await judgeHistory(porcupine, operations)).not.toEqual([]);
});

it("porcupine refuses what is no history", async ({ skip }) => {
  if (porcupine === undefined) return skip();
  const nameless = { client: "", kind: "claim", calledUs: 1, returnedUs: 2, answer: null } as const;
  await expect(judgeHistory(porcupine, [nameless])).rejects.toThrow(/a claim without a key/);
});

it("both checkers agree on random histories, possible and impossible ones", async ({ skip }) => {
  if (porcupine === undefined) return skip();
  const operations = randomHistories({ count: isLong ? 20_000 : 2_000, seed: inject("seed") });
  const ours = checkClaimHistory(operations).map(({ key }) => key);
  expect(await judgeHistory(porcupine, operations)).toEqual(ours.toSorted());
  const share = ours.length / new Set(operations.map(({ key }) => key)).size;
  expect(share).toBeGreaterThan(0.2);
  expect(share).toBeLessThan(0.8);
});
