/**
 * The half of a crash round that dies: a child program opens its ledger, does what its scenario says and prints what it
 * began and what it was answered, so that the parent knows what was acknowledged. Imports nothing that is slow to load.
 */
import { writeSync } from "node:fs";
import { loadDigest } from "../../src/digest.ts";
import type { Ledger, LedgerOptions, StoredLedger } from "../../src/ledger.ts";

export const QUARANTINE_MS = 600_000;

/** `laterMs` puts the child's clock ahead, so that what was there before is old. The operations of one step run at once. */
export interface CrashStep {
  laterMs?: number;
  operations: readonly CrashOperation[];
}

export type CrashOperation =
  | { kind: "claim" | "restore"; id: string; body: string; owner: string }
  | { kind: "lookup" | "retire"; id: string }
  | { kind: "sweep" };

/** What an operation was answered; undefined while nothing was. */
export type CrashAnswer =
  | { kind: "new" | "existing" | "found" | "added" | "present"; owner: string; bodyHash: string }
  | { kind: "conflict" | "full" | "absent" | "retired" | "kept" }
  | { kind: "swept"; count: number }
  /** It failed, and surely changed nothing, or may have. */
  | { kind: "failed"; changed: "no" | "maybe"; why: string };

/** What a child is told, as JSON in its last argument. */
export interface CrashTask {
  place: string;
  capacity?: number | undefined;
  steps: readonly CrashStep[];
  /** At which call of `pass` it dies; undefined lets it live. */
  crashAt?: number | undefined;
}

/** What a child prints, one line each. */
export type CrashLine =
  | { ready: true }
  | { began: [step: number, operation: number] }
  | { ended: [step: number, operation: number]; answer: CrashAnswer }
  | { points: number };

/**
 * Runs the scenario and ends the process.
 * @param open opens the store's ledger. It calls `pass` at every place where a crash is to be tried (between two calls to the
 *   store, or within one); the scenario's `crashAt`th call does not return. Stores that are killed from outside ignore it
 */
export async function runCrashChild(
  open: (place: string, options: LedgerOptions, pass: () => void) => Promise<StoredLedger>,
): Promise<void> {
  const task = JSON.parse(process.argv.at(-1) ?? "") as CrashTask;
  let points = 0;
  let laterMs = task.steps[0]?.laterMs ?? 0;
  const pass = () => {
    points++;
    if (points === task.crashAt) process.kill(process.pid, "SIGKILL");
  };
  const options = { capacity: task.capacity, retirable: true, now: () => Date.now() + laterMs };
  const ledger = await open(task.place, options, pass);
  print({ ready: true });
  for (const [step, { operations, laterMs: later = 0 }] of task.steps.entries()) {
    laterMs = later;
    await Promise.all(
      operations.map(async (operation, index) => {
        print({ began: [step, index] });
        print({ ended: [step, index], answer: await perform(ledger, operation) });
      }),
    );
  }
  await ledger.close();
  print({ points });
}

/** Does one operation and puts what it answers, or throws, into one shape. */
export async function perform(
  ledger: Ledger | StoredLedger,
  operation: CrashOperation,
): Promise<CrashAnswer> {
  try {
    switch (operation.kind) {
      case "claim": {
        const claim = await ledger.claim(operation.id, operation.body, async () => operation.owner);
        if (claim.kind === "conflict" || claim.kind === "full") return { kind: claim.kind };
        return { kind: claim.kind, owner: claim.owner.backend, bodyHash: claim.owner.bodyHash };
      }
      case "restore": {
        const digest = await loadDigest();
        const bodyHash = digest.bodyHash(operation.body);
        const owner = { backend: operation.owner, bodyHash };
        const kind = await (ledger as StoredLedger).restore(digest.key(operation.id), owner);
        return kind === "conflict" || kind === "full" ? { kind } : { kind, owner: operation.owner, bodyHash };
      }
      case "lookup": {
        const owner = await ledger.lookup(operation.id);
        if (owner === undefined) return { kind: "absent" };
        return { kind: "found", owner: owner.backend, bodyHash: owner.bodyHash };
      }
      case "retire":
        return {
          kind: (await ledger.retire(operation.id, { quarantineMs: QUARANTINE_MS })) ? "retired" : "kept",
        };
      case "sweep":
        return { kind: "swept", count: await ledger.sweep({ quarantineMs: QUARANTINE_MS }) };
    }
  } catch (error) {
    const changed =
      error instanceof Error && "recorded" in error && error.recorded === "maybe" ? "maybe" : "no";
    return { kind: "failed", changed, why: String(error) };
  }
}

/** At once and whole, so that what was printed before a crash has arrived. */
function print(line: CrashLine): void {
  writeSync(1, `${JSON.stringify(line)}\n`);
}
