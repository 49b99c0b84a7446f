/** What lies in a ledger's folder, for people and for moving ledgers. */
import type { ListedObject } from "@cellkit/bucket";
import type { LedgerEntry } from "../ledger.ts";
import { inParallel } from "./in-parallel.ts";
import { isSameEtag, readMark } from "./retirement.ts";
import type { LedgerStore } from "./store.ts";
import { STONE_BYTES } from "./stored-object.ts";

/** Reads at once: as many as hide the way to a store, and few beside what claims need. */
const READ_COUNT = 16;

/** A record of a listing with its mark, a mark without a record, or something foreign. */
export type ListedEntry =
  | { kind: "record"; key: string; object: ListedObject; mark: ListedObject | undefined }
  | { kind: "mark"; key: string; object: ListedObject }
  | { kind: "foreign"; key: string; object: ListedObject };

/** Lists a ledger's folder; a record and its mark come as one. */
export async function* listEntries(
  store: LedgerStore,
  prefix: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<ListedEntry> {
  let record: { kind: "record"; key: string; object: ListedObject; mark: undefined } | undefined;
  for await (const object of store.list(prefix, signal)) {
    const parsed = store.keys.parse(object.key);
    if (record !== undefined) {
      const isMarked = parsed.kind === "mark" && parsed.key === record.key;
      yield isMarked ? { ...record, mark: object } : record;
      record = undefined;
      if (isMarked) continue;
    }
    if (parsed.kind === "record") record = { ...parsed, kind: "record", object, mark: undefined };
    else if (parsed.kind === "mark") yield { ...parsed, object };
    else if (parsed.kind === "foreign")
      yield { kind: "foreign", key: object.key.slice(store.keys.folder.length), object };
  }
  if (record !== undefined) yield record;
}

/** Everything below a prefix, read; stones are left out. */
export async function* readEntries(
  store: LedgerStore,
  prefix: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<LedgerEntry> {
  const read = inParallel(listEntries(store, prefix, signal), READ_COUNT, (entry) =>
    readEntry(store, entry, signal),
  );
  for await (const entry of read) if (entry !== undefined) yield entry;
}

/** The record at a key, read; undefined if there is none, also where a mark lies without one. */
export async function readOne(
  store: LedgerStore,
  key: string,
  signal: AbortSignal | undefined,
): Promise<LedgerEntry | undefined> {
  for await (const entry of listEntries(store, `${store.keys.folder}${key}.`, signal))
    if (entry.kind === "record" && entry.key === key) return readEntry(store, entry, signal);
  return undefined;
}

async function readEntry(
  store: LedgerStore,
  entry: ListedEntry,
  signal: AbortSignal | undefined,
): Promise<LedgerEntry | undefined> {
  const { key, object } = entry;
  const { modifiedMs } = object;
  if (entry.kind === "foreign")
    return { key, owner: undefined, problem: "this is no object of a ledger", modifiedMs, marked: false };
  if (entry.kind === "mark")
    return { key, owner: undefined, problem: "a mark without a record", modifiedMs, marked: true };
  const found = await store.read(key, signal);
  if (found.kind === "corrupt") {
    const marked = entry.mark !== undefined;
    return { key, owner: undefined, problem: found.problem, modifiedMs, marked };
  }
  if (found.kind !== "record") return undefined;
  const mark = entry.mark === undefined ? undefined : await readMark(store, key, signal);
  return { key, owner: found.owner, modifiedMs, marked: mark !== undefined && isSameEtag(mark, found.etag) };
}

/** Whether a listed object counts: it lies at a record's key and is no stone. */
export function isCounted(entry: ListedEntry): boolean {
  return entry.kind === "record" && entry.object.sizeBytes !== STONE_BYTES;
}
