/** What lies in a ledger that should not. Changes nothing. */
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { LedgerCallOptions, LedgerReader } from "../ledger.ts";
import { MARKER_NAME, recordKey, STAGING_NAME } from "../posix/ledger-directory.ts";
import { maybeStaging } from "../posix/staging.ts";
import { BindingsDigest } from "../transfer/bindings-digest.ts";
import { entryKind } from "../transfer/entry-kind.ts";
import { isProbe } from "./agent-protocol.ts";

/** A staging file that is older was left behind by a crash: a claim takes seconds. */
const STALE_STAGING_MS = 600_000;

/** The most things that findings name, of each kind; the counts go on. */
const NAMED_COUNT = 1_000;

/** Something by its name, and what is wrong with it. */
export interface Finding {
  /** A record's key, or the name of what is none. */
  name: string;
  problem: string;
}

/** What {@link verifyLedger} found. */
export interface LedgerFindings {
  recordCount: number;
  /** Records that wait for a sweep. */
  markedCount: number;
  /** Records that cannot be read. Their ids are refused until each is restored from a backup. */
  corruptCount: number;
  corrupt: Finding[];
  /** What is no part of a ledger. */
  foreignCount: number;
  foreign: Finding[];
  /** Marks for a sweep without a record; the next sweep removes them. */
  markCount: number;
  marks: Finding[];
  /** Staging files that a crash left behind, and probes of a qualification that was killed: no trouble, only told. Of a POSIX directory. */
  staleStagingCount: number;
  staleStaging: Finding[];
  /** Other ledgers in subdirectories, by their names. They are not looked at. Of a POSIX directory. */
  otherLedgers: string[];
  /** Of the bindings, in whatever order: the same for two ledgers that bind the same. */
  bindingsDigest: string;
}

/** Options of {@link verifyLedger}. */
export interface VerifyOptions extends LedgerCallOptions {
  /** The directory of a POSIX ledger, whose staging files are looked at then. */
  directory?: string | undefined;
  /** Hears how many entries were looked at. */
  onProgress?: (seenCount: number) => void;
  /** Unix milliseconds. @default Date.now */
  now?: () => number;
}

/** Whether something was found that should not be there. Stale staging files are no trouble. */
export function isClean({ corruptCount, foreignCount, markCount }: LedgerFindings): boolean {
  return corruptCount + foreignCount + markCount === 0;
}

/** Looks at everything that lies in a ledger. Throws what `entries` of the ledger throws: then it could not tell. */
export async function verifyLedger(
  ledger: LedgerReader,
  options: VerifyOptions = {},
): Promise<LedgerFindings> {
  const { directory, onProgress, signal, now = Date.now } = options;
  const findings: LedgerFindings = {
    recordCount: 0,
    markedCount: 0,
    corruptCount: 0,
    corrupt: [],
    foreignCount: 0,
    foreign: [],
    markCount: 0,
    marks: [],
    staleStagingCount: 0,
    staleStaging: [],
    otherLedgers: [],
    bindingsDigest: "",
  };
  const digest = new BindingsDigest();
  let seenCount = 0;
  for await (const entry of ledger.entries({ signal })) {
    onProgress?.(++seenCount);
    if (directory !== undefined && maybeStaging(entry.key)) continue;
    const kind = await entryKind(ledger, entry, { signal });
    if (kind === "record") {
      findings.recordCount += 1;
      const owner = entry.owner ?? (await ledger.entry(entry.key, { signal }))?.owner;
      if (owner !== undefined) digest.add(entry.key, owner);
      if (entry.marked) findings.markedCount += 1;
      continue;
    }
    const finding = { name: entry.key, problem: entry.problem ?? meaning[kind] };
    const list = { corrupt: findings.corrupt, foreign: findings.foreign, mark: findings.marks }[kind];
    findings[`${kind}Count`] += 1;
    if (list.length < NAMED_COUNT) list.push(finding);
  }
  if (directory !== undefined) {
    await lookForStaging(directory, findings, now());
    await lookForFolders(directory, findings);
  }
  findings.bindingsDigest = `${digest}`;
  return findings;
}

const meaning = {
  corrupt: "it cannot be read as a record",
  foreign: "it is nothing of a ledger's",
  mark: "a mark for a sweep without a record",
} as const;

/** Files in the staging folder, and those of the original (and of other versions) beside the records. */
async function lookForStaging(directory: string, findings: LedgerFindings, nowMs: number): Promise<void> {
  const folder = join(directory, STAGING_NAME);
  // Through a link the files of others would be found.
  const isFolder = (await lstat(folder).catch(() => undefined))?.isDirectory() === true;
  const inFolder = !isFolder
    ? []
    : await readdir(folder).catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return [];
        throw error;
      });
  const names = [
    ...(await readdir(directory)).filter(maybeStaging),
    ...inFolder.map((name) => join(STAGING_NAME, name)),
  ];
  for (const name of names) {
    const found = await lstat(join(directory, name)).catch(() => undefined);
    // Gone meanwhile: its claim ended.
    if (found === undefined || !found.isFile() || nowMs - found.mtimeMs < STALE_STAGING_MS) continue;
    findings.staleStagingCount += 1;
    const problem = `left behind by a crash ${Math.round((nowMs - found.mtimeMs) / 60_000)} min ago`;
    if (findings.staleStaging.length < NAMED_COUNT) findings.staleStaging.push({ name, problem });
  }
}

/** Subdirectories: other ledgers, and what a killed qualification left. */
async function lookForFolders(directory: string, findings: LedgerFindings): Promise<void> {
  const folders = (await readdir(directory, { withFileTypes: true })).filter(
    (each) => each.isDirectory() && each.name !== STAGING_NAME,
  );
  for (const { name } of folders) {
    if (isProbe(name)) {
      findings.staleStagingCount += 1;
      const problem = "of a qualification that is under way or was killed; if none is, remove it";
      if (findings.staleStaging.length < NAMED_COUNT) findings.staleStaging.push({ name, problem });
    } else if (await isLedger(join(directory, name))) findings.otherLedgers.push(name);
  }
}

/** One whose directory cannot be read is named, rather than passed over. */
async function isLedger(path: string): Promise<boolean> {
  const names = await readdir(path).catch(() => [MARKER_NAME]);
  return names.some((name) => name === MARKER_NAME || recordKey(name) !== undefined);
}
