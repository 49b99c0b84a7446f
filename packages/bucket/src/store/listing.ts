import type { ObjectHead } from "./object-file.ts";
import type { ObjectStore } from "./object-store.ts";
import { endOfPrefix, type Found } from "./walk.ts";

/** Footers are read this many at a time. */
const BATCH_COUNT = 32;

/** What to list; all byte strings. */
export interface ListingQuery {
  prefix: string;
  /** Keys with this after the prefix are answered as one common prefix; "" for none. */
  delimiter: string;
  /** Only keys that are not below this. */
  from: string;
}

/** One line of a listing: an object, or what stands for all that begin with `prefix`. Byte strings. */
export type ListingItem =
  | { kind: "object"; key: string; head: ObjectHead }
  | { kind: "prefix"; prefix: string };

/** The first byte string above one key, to go on after it. */
export function afterKey(key: string): string {
  return `${key}\0`;
}

/** Lists in the order of bytes. Objects that disappear meanwhile are left out. */
export async function* listing(store: ObjectStore, query: ListingQuery): AsyncGenerator<ListingItem> {
  const { prefix, delimiter } = query;
  const cursor = store.cursor(prefix, query.from);
  let batch: (Found | { prefix: string })[] = [];
  const flush = async () => {
    const items = await Promise.all(batch.map((entry) => itemOf(store, entry)));
    batch = [];
    return items.filter((item) => item !== undefined);
  };
  for await (const found of store.keys(cursor)) {
    const at = delimiter === "" ? -1 : found.key.indexOf(delimiter, prefix.length);
    if (at < 0) {
      batch.push(found);
    } else {
      const common = found.key.slice(0, at + delimiter.length);
      batch.push({ prefix: common });
      cursor.from = endOfPrefix(common);
    }
    if (batch.length >= BATCH_COUNT) yield* await flush();
  }
  yield* await flush();
}

async function itemOf(
  store: ObjectStore,
  entry: Found | { prefix: string },
): Promise<ListingItem | undefined> {
  if ("prefix" in entry) return { kind: "prefix", prefix: entry.prefix };
  const head = await store.headOf(entry);
  return head && { kind: "object", key: entry.key, head };
}
