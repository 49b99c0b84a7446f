/** Everything that lies in a ledger's directory, for people and for moving ledgers. */
import { join } from "node:path";
import type { LedgerEntry } from "../ledger.ts";
import { diskFailure } from "./disk-failure.ts";
import type { FileCalls } from "./file-calls.ts";
import {
  HINT_NAME,
  type LedgerDirectory,
  LOCK_NAME,
  MARKER_NAME,
  markKey,
  recordKey,
  STAGING_NAME,
} from "./ledger-directory.ts";
import type { RecordFiles } from "./record-files.ts";
import { maybeStaging } from "./staging.ts";

const OWN_NAMES: readonly string[] = [LOCK_NAME, MARKER_NAME, HINT_NAME];
/** Another ledger of the same router may lie in such a folder. */
const LEDGER_FOLDER = /^[a-z0-9-]{1,64}$/;

/** One entry by its key; undefined if there is no record. @throws LedgerUnavailableError */
export async function findEntry(
  directory: LedgerDirectory,
  files: RecordFiles,
  key: string,
): Promise<LedgerEntry | undefined> {
  const found = await files.inspect(key);
  if (found === undefined) return undefined;
  const { content, modifiedMs } = found;
  let marked: boolean;
  try {
    marked = (await directory.calls.lstat(directory.markPath(key))) !== undefined;
  } catch (error) {
    throw diskFailure(directory.url, `look at the record ${key}`, error, "no");
  }
  return "owner" in content
    ? { key, owner: content.owner, modifiedMs, marked }
    : { key, owner: undefined, problem: content.problem, modifiedMs, marked };
}

/** All entries. What is nobody's record has its file name as its key, never 64 hex digits. @throws LedgerUnavailableError */
export async function* listEntries(
  directory: LedgerDirectory,
  files: RecordFiles,
  signal?: AbortSignal,
): AsyncGenerator<LedgerEntry> {
  const names: string[] = [];
  await directory.check();
  try {
    await directory.calls.eachName(directory.path, (name) => {
      signal?.throwIfAborted();
      if (!OWN_NAMES.includes(name)) names.push(name);
      return true;
    });
  } catch (error) {
    signal?.throwIfAborted();
    throw diskFailure(directory.url, "list its directory", error, "no");
  }
  // What was listed is true of this ledger only if it lay there all the time.
  await directory.check();
  for (const name of names) {
    signal?.throwIfAborted();
    const key = recordKey(name);
    const entry = await (key === undefined
      ? findOther(directory, files, name)
      : findEntry(directory, files, key));
    if (entry !== undefined) yield entry;
  }
}

async function findOther(
  directory: LedgerDirectory,
  files: RecordFiles,
  name: string,
): Promise<LedgerEntry | undefined> {
  let status: Awaited<ReturnType<typeof directory.calls.lstat>>;
  try {
    status = await directory.calls.lstat(join(directory.path, name));
  } catch (error) {
    throw diskFailure(directory.url, `look at ${name}`, error, "no");
  }
  if (status === undefined) return undefined;
  if (status.isDirectory() && (name === STAGING_NAME || LEDGER_FOLDER.test(name))) return undefined;
  const modifiedMs = Number(status.mtimeNs) / 1e6;
  const marked = markKey(name);
  if (marked !== undefined) {
    if ((await files.inspect(marked)) !== undefined) return undefined;
    const problem = "a mark without a record; the next sweep removes it";
    return { key: marked, owner: undefined, problem, modifiedMs, marked: true };
  }
  const problem = maybeStaging(name)
    ? "a staging file that was never published; a later start removes it"
    : "nothing of a ledger's";
  return { key: name, owner: undefined, problem, modifiedMs, marked: false };
}

/** Whether a directory has a record, by its name alone. */
export async function holdsRecord(path: string, calls: Pick<FileCalls, "eachName">): Promise<boolean> {
  let found = false;
  await calls.eachName(path, (name) => {
    found = recordKey(name) !== undefined;
    return !found;
  });
  return found;
}
