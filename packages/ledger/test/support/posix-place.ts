import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { LedgerEntry, StoredLedger } from "../../src/ledger.ts";
import { openPosixLedger, type PosixLedgerOptions } from "../../src/posix/open-posix-ledger.ts";

/** A directory that is removed when the test ends. */
export async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "cellkit-ledger-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** For what must get the lock: whoever holds it may be a process that is held up for seconds. */
export const PATIENT_LOCK_MS = 30_000;

/** A ledger that is closed when the test ends; in a directory of its own unless one is given. */
export async function openForTest(options: Partial<PosixLedgerOptions> = {}): Promise<StoredLedger> {
  const directory = options.directory ?? (await temporaryDirectory());
  const ledger = await openPosixLedger({ lockTimeoutMs: PATIENT_LOCK_MS, ...options, directory });
  onTestFinished(() => ledger.close());
  return ledger;
}

/** An owner's choice that is made at once. */
export function chooses(backend = "http://10.20.0.11:8787"): () => Promise<string> {
  return async () => backend;
}

/** All entries of a ledger. */
export async function listAll(ledger: StoredLedger): Promise<LedgerEntry[]> {
  const entries: LedgerEntry[] = [];
  for await (const entry of ledger.entries()) entries.push(entry);
  return entries;
}
