import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, it, onTestFinished } from "vitest";
import { type CrashStore, crashRounds } from "../support/crash-rounds.ts";
import { openFileLedger } from "../support/file-ledger.ts";

async function fileStore(isHasty: boolean): Promise<CrashStore> {
  const directory = await mkdtemp(join(tmpdir(), "cellkit-ledger-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  return {
    name: isHasty ? "a hasty file" : "a file",
    child: new URL("../support/file-crash-child.ts", import.meta.url),
    open: (place, options) => openFileLedger(join(directory, place), options),
    env: { CRASH_DIRECTORY: directory, CRASH_HASTY: isHasty ? "1" : "" },
    capacity: false,
    lateWrites: false,
  };
}

it("crash rounds pass a store that writes before it answers, at every point", async () => {
  const store = await fileStore(false);
  const { crashCount, points } = await crashRounds(store, {
    crashCount: 12,
    seed: inject("seed"),
    only: ["claim"],
  });
  expect(crashCount).toBeGreaterThanOrEqual(12);
  expect(points["claim"]).toBe(20);
});

it("crash rounds find a store that answers before it writes", async () => {
  const store = await fileStore(true);
  const rounds = crashRounds(store, { crashCount: 30, seed: inject("seed"), only: ["claim"] });
  await expect(rounds).rejects.toThrow(/claim, killed at point [0-9]+ .*no order of these explains/);
});
