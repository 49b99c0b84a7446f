/** Moving a ledger from one store to another, without losing a binding. */
import { CorruptRecordError, LedgerExportError, LedgerOptionError } from "../errors.ts";
import type { LedgerCallOptions, LedgerReader, StoredLedger } from "../ledger.ts";
import { maybeStaging } from "../posix/staging.ts";
import { BindingsDigest } from "./bindings-digest.ts";
import { checkExport } from "./check-export.ts";
import { entryKind } from "./entry-kind.ts";
import { bindingProblem, type ExportHead, ExportWriter, readExport } from "./export-file.ts";

/** How many records are on their way into a ledger at the same time; a POSIX ledger makes one group of them. */
const IMPORT_PARALLEL_COUNT = 64;

/** The most keys that a summary names, of each kind. */
const NAMED_COUNT = 1_000;

/** What an export has, and what it left out. */
export interface ExportSummary {
  recordCount: number;
  /** Foreign things, and marks without a record: they bind nothing, and `verifyLedger` names them. Not staging files. */
  leftOutCount: number;
  /** Of the bindings, in whatever order: the same for two ledgers that bind the same. */
  bindingsDigest: string;
}

/**
 * The lines of an export, each with its line break. What is claimed meanwhile may be missing: stop the routers first. A
 * record's time and its mark for a sweep stay behind; both only make it live longer in the ledger that takes it.
 * @throws CorruptRecordError (CELLKIT_LEDGER_CORRUPT): its id is taken, and an export without it would free it
 */
export async function* exportLedger(
  ledger: LedgerReader,
  options: LedgerCallOptions = {},
): AsyncGenerator<string, ExportSummary> {
  const writer = new ExportWriter();
  const digest = new BindingsDigest();
  let recordCount = 0;
  let leftOutCount = 0;
  yield writer.head({ ledger: ledger.name, ledgerId: ledger.ledgerId ?? "" });
  for await (const entry of ledger.entries(options)) {
    const { key, owner, problem } = entry;
    const kind = await entryKind(ledger, entry, options);
    if (kind === "mark" || kind === "foreign") {
      if (!maybeStaging(key)) leftOutCount += 1;
    } else if (owner === undefined)
      throw new CorruptRecordError(ledger.url, key, problem ?? "it cannot be read");
    else {
      const odd = bindingProblem(owner);
      if (odd !== undefined) throw new CorruptRecordError(ledger.url, key, `its ${odd}`);
      recordCount += 1;
      digest.add(key, owner);
      yield writer.record({ key, owner });
    }
  }
  yield writer.end();
  return { recordCount, leftOutCount, bindingsDigest: `${digest}` };
}

/** How the bindings of a file stand to a ledger. Each is counted in exactly one of the five. */
export interface ImportSummary {
  recordCount: number;
  /** Written now; of a dry run: missing. */
  addedCount: number;
  /** There already, with the same owner and the same body. */
  presentCount: number;
  /** There already, with another owner or another body. Left as it is. */
  conflictCount: number;
  /** There already, and what is there cannot be read. Left as it is: restore it, as docs/move-a-ledger.md tells. */
  corruptCount: number;
  /** Not written, since the ledger is at its capacity. */
  fullCount: number;
  /** The keys of the conflicts, at most 1,000. */
  conflicts: string[];
  /** The keys of what cannot be read, at most 1,000. */
  corrupt: string[];
  /** Of the file's bindings, in whatever order. As of an export of the ledger, if that has just these. */
  bindingsDigest: string;
}

/** Options of {@link importLedger}. */
export interface ImportOptions extends LedgerCallOptions {
  /** Only tell what would be done. @default false */
  dryRun?: boolean;
  /** Take bindings of a ledger with another name, too. @default false */
  anyName?: boolean;
  /** Of a dry run: how many records the ledger will hold at most. @default what an open ledger says, else no limit */
  capacity?: number | undefined;
  /** Hears how many of the file's records are done. */
  onProgress?: (doneCount: number, recordCount: number) => void;
}

/** What an import can go into. Undefined, for a dry run, stands for a ledger that does not exist yet. */
export type ImportTarget = StoredLedger | LedgerReader | undefined;

/**
 * Writes the bindings of an export into a ledger, and never over one that is there. The file is read twice: a cut one is
 * refused before anything is written. Doing it again goes on where it broke off.
 * @param into for a dry run one that is open for reading will do; or how to open it, asked once the file is known to be whole
 * @param read opens the file from its beginning
 * @throws LedgerExportError (CELLKIT_LEDGER_EXPORT), LedgerOptionError (CELLKIT_LEDGER_OPTION) for a ledger of another name, the reason
 *   of the signal, and what `restore` of the ledger throws
 */
export async function importLedger(
  into: ImportTarget | ((head: ExportHead) => Promise<ImportTarget>),
  read: () => AsyncIterable<Uint8Array>,
  options: ImportOptions = {},
): Promise<ImportSummary> {
  const { head, recordCount, bindingsDigest, fileDigest } = await checkExport(read(), options);
  const ledger = typeof into === "function" ? await into(head) : into;
  const target = ledger !== undefined && "restore" in ledger ? ledger : undefined;
  const { dryRun = target === undefined, anyName = false, onProgress, signal } = options;
  if (!dryRun && target === undefined)
    throw new LedgerOptionError(
      "a ledger that is open for reading only can be imported into by a dry run only",
    );
  if (ledger !== undefined && ledger.name !== head.ledger && !anyName)
    throw new LedgerOptionError(
      `the file was made from a ledger of the name ${JSON.stringify(head.ledger)}, and this one is ${ledger.name}: open the other, or set anyName`,
    );
  const summary: ImportSummary = {
    recordCount,
    addedCount: 0,
    presentCount: 0,
    conflictCount: 0,
    corruptCount: 0,
    fullCount: 0,
    conflicts: [],
    corrupt: [],
    bindingsDigest,
  };
  const running = new Set<Promise<void>>();
  let failure: unknown;
  let doneCount = 0;
  const place = async (key: string, owner: { backend: string; bodyHash: string }): Promise<void> => {
    const kind =
      dryRun || target === undefined
        ? await wouldBe(ledger, key, owner, { signal })
        : await restoreOrConflict(target, key, owner, { signal });
    summary[`${kind}Count`] += 1;
    if (kind === "conflict" && summary.conflicts.length < NAMED_COUNT) summary.conflicts.push(key);
    if (kind === "corrupt" && summary.corrupt.length < NAMED_COUNT) summary.corrupt.push(key);
    doneCount += 1;
    onProgress?.(doneCount, recordCount);
  };
  try {
    let isSame = false;
    for await (const line of readExport(read(), { signal })) {
      if ("end" in line) isSame = line.end.digest === fileDigest;
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
    if (failure === undefined && !isSame) throw new LedgerExportError("it is another one now");
  } catch (cause) {
    await Promise.all(running);
    // It was whole a moment ago.
    if (!(cause instanceof LedgerExportError)) throw cause;
    throw LedgerExportError.changed(cause.problem, dryRun ? 0 : summary.addedCount, { cause });
  }
  await Promise.all(running);
  if (failure !== undefined) throw failure;
  if (dryRun) await tellFull(summary, ledger, options);
  return summary;
}

/** Of what would be added, as much as would find no room. */
async function tellFull(
  summary: ImportSummary,
  ledger: StoredLedger | LedgerReader | undefined,
  { capacity, signal }: ImportOptions,
): Promise<void> {
  const limit = capacity ?? (ledger !== undefined && "capacity" in ledger ? ledger.capacity : undefined);
  if (limit === undefined || summary.addedCount === 0) return;
  const room = Math.max(0, limit - (await countRecords(ledger, signal)));
  summary.fullCount = Math.max(0, summary.addedCount - room);
  summary.addedCount -= summary.fullCount;
}

/** Records that cannot be read count, too. */
async function countRecords(
  ledger: StoredLedger | LedgerReader | undefined,
  signal: AbortSignal | undefined,
): Promise<number> {
  if (ledger === undefined) return 0;
  if ("count" in ledger) return ledger.count({ signal });
  let count = 0;
  for await (const entry of ledger.entries({ signal })) {
    const kind = await entryKind(ledger, entry, { signal });
    if (kind === "record" || kind === "corrupt") count += 1;
  }
  return count;
}

type Placed = "added" | "present" | "conflict" | "corrupt" | "full";

/** A record that cannot be read takes its id: perhaps for this very binding, and perhaps not. */
async function restoreOrConflict(
  ledger: StoredLedger,
  ...call: Parameters<StoredLedger["restore"]>
): Promise<Placed> {
  try {
    return await ledger.restore(...call);
  } catch (error) {
    if (error instanceof CorruptRecordError) return "corrupt";
    throw error;
  }
}

async function wouldBe(
  ledger: LedgerReader | undefined,
  ...[key, owner, options]: Parameters<StoredLedger["restore"]>
): Promise<Placed> {
  const found = await ledger?.entry(key, options);
  if (found === undefined) return "added";
  if (found.owner === undefined) return "corrupt";
  const same = found.owner.backend === owner.backend && found.owner.bodyHash === owner.bodyHash;
  return same ? "present" : "conflict";
}
