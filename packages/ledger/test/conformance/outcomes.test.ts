import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { LedgerOptions, StoredLedger } from "../../src/ledger.ts";
import { LedgerMemory, openMemoryLedger } from "../../src/memory-ledger.ts";
import { openPosixLedger } from "../../src/posix/open-posix-ledger.ts";
import { type VectorStep, vectors } from "../support/ledger-vectors.ts";

const stores: Record<string, () => Promise<(options: LedgerOptions) => Promise<StoredLedger>>> = {
  async memory() {
    const memory = new LedgerMemory();
    return (options) => openMemoryLedger({ ...options, memory });
  },
  async "a directory"() {
    const directory = await mkdtemp(join(tmpdir(), "cellkit-ledger-"));
    onTestFinished(() => rm(directory, { recursive: true }));
    return (options) => openPosixLedger({ ...options, directory });
  },
};

describe.each(Object.keys(stores))("the published outcomes in %s", (store) => {
  it.each(vectors.ledger.outcomes)("$note", async ({ note, steps }) => {
    const open = await stores[store]?.();
    const quarantineMs = 600_000;
    // The age of single records: for calls that concern an aged one the clock is ahead, for all others it is not.
    const aged = new Map<string, number>();
    let aheadMs = 0;
    const options = {
      capacity: Number(/capacity (\d+)/.exec(note)?.[1] ?? 5),
      retirable: true,
      now: () => Date.now() + aheadMs,
    };
    let ledger = (await open?.(options)) as StoredLedger;
    onTestFinished(() => ledger.close());
    for (const step of steps) {
      const { op, id = "", removed } = step;
      const seconds = op === "sweep" ? Math.max(0, ...aged.values()) : (aged.get(id) ?? 0);
      aheadMs = seconds * 1_000;
      switch (op) {
        case "claim":
          expect([step, await outcomeOf(ledger, step)]).toEqual([
            step,
            { outcome: step.outcome, backend: step.backend ?? undefined },
          ]);
          break;
        case "lookup":
          expect([step, (await ledger.lookup(id))?.backend]).toEqual([step, step.backend ?? undefined]);
          break;
        case "setAge":
          aged.set(id, step.seconds ?? 0);
          break;
        case "retire":
          expect([step, await ledger.retire(id, { quarantineMs })]).toEqual([step, removed]);
          aged.delete(id);
          break;
        case "sweep":
          expect([step, await ledger.sweep({ quarantineMs })]).toEqual([step, removed]);
          break;
        case "reopen":
          await ledger.close();
          ledger = (await open?.(options)) as StoredLedger;
      }
    }
  });
});

/** Makes a claim as a step says; an owner that must not be asked for is an error in any case. */
async function outcomeOf(
  ledger: StoredLedger,
  { id = "", body = "", choose }: VectorStep,
): Promise<{ outcome: string; backend: string | undefined }> {
  const chooseOwner = async () => {
    if (choose?.startsWith("http://") === true) return choose;
    throw new TypeError(`the vector says ${choose}`);
  };
  try {
    const claim = await ledger.claim(id, body, chooseOwner);
    return { outcome: claim.kind, backend: "owner" in claim ? claim.owner.backend : undefined };
  } catch {
    return { outcome: "error", backend: undefined };
  }
}
