/** Moving a ledger from one store to another, without losing a binding. */
import { CorruptRecordError, LedgerExportError } from "../errors.ts";
import type { LedgerCallOptions, StoredLedger } from "../ledger.ts";
import { entryKind } from "./entry-kind.ts";
import { ExportWriter, readExport } from "./export-file.ts";

/** How many records are on their way into a ledger at the same time; a POSIX ledger makes one group of them. */
const IMPORT_PARALLEL_COUNT = 64;

/** The most keys of conflicts that a summary names. */
const NAMED_CONFLICT_COUNT = 1_000;

/** What an export left out, since it binds nothing. */
export interface ExportSummary {
  recordCount: number;
  /** Foreign things, and marks without a record. */
  leftOutCount: number;
}

/**
 * The lines of an export, each with its line break. What is claimed meanwhile may be missing: stop the routers first. A
 * record's time and its mark for a sweep stay behind; both only make it live longer in the ledger that takes it.
 * @throws CorruptRecordError (CELLKIT_LEDGER_CORRUPT): its id is taken, and an export without it would free it
 */
export async function* exportLedger(
  ledger: StoredLedger,
  options: LedgerCallOptions = {},
): AsyncGenerator<string, ExportSummary> {
  const writer = new ExportWriter();
  const summary: ExportSummary = { recordCount: 0, leftOutCount: 0 };
  yield writer.head({ ledger: ledger.name, ledgerId: ledger.ledgerId });
  for await (const entry of ledger.entries(options)) {
    const { key, owner, problem } = entry;
    const kind = await entryKind(ledger, entry, options);
    if (kind === "mark" || kind === "foreign") summary.leftOutCount += 1;
    else if (owner === undefined)
      throw new CorruptRecordError(ledger.url, key, problem ?? "it cannot be read");
    else {
      summary.recordCount += 1;
      yield writer.record({ key, owner });
    }
  }
  yield writer.end();
  return summary;
}

/** How the bindings of a file stand to a ledger. Each is counted in exactly one of the four. */
export interface ImportSummary {
  recordCount: number;
  /** Written now; of a dry run: missing. */
  addedCount: number;
  /** There already, with the same owner and the same body. */
  presentCount: number;
  /** There already and not the same, or not readable. Left as it is. */
  conflictCount: number;
  /** Not written, since the ledger is at its capacity. */
  fullCount: number;
  /** The keys of the conflicts, at most 1,000. */
  conflicts: string[];
}

/** Options of {@link importLedger}. */
export interface ImportOptions extends LedgerCallOptions {
  /** Only tell what would be done. @default false */
  dryRun?: boolean;
  /** Hears how many of the file's records are done. */
  onProgress?: (doneCount: number, recordCount: number) => void;
}

/**
 * Writes the bindings of an export into a ledger, and never over one that is there. The file is read twice: a cut one is
 * refused before anything is written. Doing it again goes on where it broke off.
 * @param ledger undefined in a dry run stands for one that does not exist yet
 * @param read opens the file from its beginning
 * @throws LedgerExportError (CELLKIT_LEDGER_EXPORT), and what `restore` of the ledger throws
 */
export async function importLedger(
  ledger: StoredLedger | undefined,
  read: () => AsyncIterable<Uint8Array>,
  options: ImportOptions = {},
): Promise<ImportSummary> {
  const { dryRun = ledger === undefined, onProgress, signal } = options;
  const summary: ImportSummary = {
    recordCount: await checkExport(read()),
    addedCount: 0,
    presentCount: 0,
    conflictCount: 0,
    fullCount: 0,
    conflicts: [],
  };
  const running = new Set<Promise<void>>();
  let failure: unknown;
  const place = async (key: string, owner: { backend: string; bodyHash: string }): Promise<void> => {
    const kind =
      dryRun || ledger === undefined
        ? await wouldBe(ledger, key, owner, { signal })
        : await restoreOrConflict(ledger, key, owner, { signal });
    summary[`${kind}Count`] += 1;
    if (kind === "conflict" && summary.conflicts.length < NAMED_CONFLICT_COUNT) summary.conflicts.push(key);
    onProgress?.(
      summary.addedCount + summary.presentCount + summary.conflictCount + summary.fullCount,
      summary.recordCount,
    );
  };
  for await (const line of readExport(read())) {
    if (!("record" in line)) continue;
    signal?.throwIfAborted();
    if (failure !== undefined) break;
    const { key, owner } = line.record;
    const one: Promise<void> = place(key, owner)
      .catch((error: unknown) => {
        failure ??= error;
      })
      .finally(() => running.delete(one));
    running.add(one);
    if (running.size >= IMPORT_PARALLEL_COUNT) await Promise.race(running);
  }
  await Promise.all(running);
  if (failure !== undefined) throw failure;
  return summary;
}

/** Reads a file to its end. Answers how many records it has. @throws LedgerExportError when it is not whole, or names a key twice */
async function checkExport(bytes: AsyncIterable<Uint8Array>): Promise<number> {
  const keys = new Set<string>();
  for await (const line of readExport(bytes)) {
    if (!("record" in line)) continue;
    const { key } = line.record;
    if (keys.has(key)) throw new LedgerExportError(`it has the key ${key} twice`);
    keys.add(key);
  }
  return keys.size;
}

type Placed = "added" | "present" | "conflict" | "full";

/** A record that cannot be read is a conflict like any other: the id is taken, and not by this binding for certain. */
async function restoreOrConflict(
  ledger: StoredLedger,
  ...call: Parameters<StoredLedger["restore"]>
): Promise<Placed> {
  try {
    return await ledger.restore(...call);
  } catch (error) {
    if (error instanceof CorruptRecordError) return "conflict";
    throw error;
  }
}

async function wouldBe(
  ledger: StoredLedger | undefined,
  ...[key, owner, options]: Parameters<StoredLedger["restore"]>
): Promise<Placed> {
  const found = await ledger?.entry(key, options);
  if (found === undefined) return "added";
  const same = found.owner?.backend === owner.backend && found.owner.bodyHash === owner.bodyHash;
  return same ? "present" : "conflict";
}
