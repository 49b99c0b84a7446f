/**
 * How an id of a bucket's ledger becomes free again.
 *
 * A `Bucket`'s deletion takes no condition (Amazon has one, but a store that lacks it may ignore it), and it may arrive late. So a record is never
 * deleted: between the look that found it old enough and the deletion, somebody else may retire it and a third may claim the id anew, and
 * the deletion would then take the new record away, the id would be free, and its work could run a second time. Instead the record is
 * replaced by a stone, under the condition that it is still the one that was found old. Whoever claims the id next replaces that stone,
 * under its condition. Both are the conditional writes that a qualified bucket decides for one of many, and since no two writes have the
 * same bytes, no ETag ever comes back. The price: a retired id keeps an object of 40 bytes. It does not count, and nothing removes it.
 *
 * A mark says which record it means, by its ETag. One that was left behind by a crash can therefore not have a later record of the same
 * id swept. Marks themselves are written and deleted without conditions; what can be lost is a mark, then its record stays until it is
 * retired again.
 */
import { LedgerUnavailableError } from "../errors.ts";
import type { LedgerStore } from "./store.ts";
import { makeStone } from "./stored-object.ts";

/** How often a record is looked at again that changed between the look and the listing. */
const LOOK_LIMIT_COUNT = 8;
const MARK_LIMIT_BYTES = 256;

/** Since when a record may be retired, and what time it is. */
export interface Quarantine {
  quarantineMs: number;
  nowMs: number;
}

/**
 * Frees an id whose record is old enough, or marks it.
 * @returns whether the record is gone by this call
 */
export async function retireRecord(
  store: LedgerStore,
  key: string,
  quarantine: Quarantine,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  for (let count = 1; count <= LOOK_LIMIT_COUNT; count += 1) {
    const found = await store.look(key, signal);
    if (found.kind !== "record") return false;
    const listed = await store.describe(key, signal);
    if (listed === undefined || !isSameEtag(listed.etag, found.etag)) continue;
    if (isAged(listed.modifiedMs, quarantine)) return layStone(store, key, found.etag, signal);
    await store.guard(signal, "no", () =>
      store.bucket.put(store.keys.mark(key), found.etag, { signal, contentType: "text/plain" }),
    );
    return false;
  }
  throw new LedgerUnavailableError(
    store.url,
    `the listing of the bucket does not show the record ${key} as it is`,
    "no",
  );
}

/**
 * Removes one marked record if it is old enough and the one that was marked, and a mark that is for no record that is there.
 * @param record what the listing said of it; undefined if the listing had the mark alone, or a stone
 * @returns whether the record is gone by this call
 */
export async function sweepRecord(
  store: LedgerStore,
  key: string,
  record: { etag: string; modifiedMs: number } | undefined,
  quarantine: Quarantine,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  if (record !== undefined) {
    if (!isAged(record.modifiedMs, quarantine)) return false;
    const marked = await readMark(store, key, signal);
    if (marked !== undefined && isSameEtag(marked, record.etag)) {
      const found = await store.look(key, signal);
      return (
        found.kind === "record" &&
        isSameEtag(found.etag, record.etag) &&
        layStone(store, key, found.etag, signal)
      );
    }
  }
  await store.guard(signal, "no", () => store.bucket.delete(store.keys.mark(key), { signal }));
  return false;
}

/** The ETag of the record that is marked; undefined if none is. */
export async function readMark(
  store: LedgerStore,
  key: string,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  const mark = await store.guard(signal, "no", () =>
    store.bucket.get(store.keys.mark(key), { signal, maxBytes: MARK_LIMIT_BYTES }),
  );
  return mark && Buffer.from(mark.body).toString("latin1");
}

/** ETags are quoted in some answers of some stores, and bare in others. */
export function isSameEtag(one: string, other: string): boolean {
  return one.replaceAll('"', "") === other.replaceAll('"', "");
}

/** Replaces exactly the record with this ETag. */
async function layStone(
  store: LedgerStore,
  key: string,
  etag: string,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const stone = makeStone();
  const outcome = await store.write(store.keys.record(key), stone, etag, signal);
  if (!outcome.applied) {
    // Somebody else retired it first; or an answer was lost, ours was applied, and the id has been claimed again since.
    const found = await store.look(key, signal, "maybe");
    const isOurs = found.kind === "retired" && Buffer.compare(found.bytes, stone) === 0;
    if (!isOurs && outcome.settled)
      throw new LedgerUnavailableError(store.url, `it is not known who retired the record ${key}`, "maybe");
    if (!isOurs) return false;
  }
  // The id is free, whatever becomes of its mark: one that stays names an ETag that never comes back, and the next sweep removes it.
  await store.bucket.delete(store.keys.mark(key), { signal }).catch(() => undefined);
  return true;
}

/** A store's time of a write may be cut to whole seconds: then the record may be almost a second younger. Negative ages are young. */
function isAged(modifiedMs: number, { quarantineMs, nowMs }: Quarantine): boolean {
  const latestMs = modifiedMs % 1000 === 0 ? modifiedMs + 999 : modifiedMs;
  return nowMs - latestMs >= quarantineMs && nowMs >= modifiedMs;
}
