// Leases of workerd processes that we own: which one is ours, and how the lease of a dead one is ended so that survivors
// need not wait for it to lapse.
//
// A PUT of the dead process may still be on its way. Renewals carry If-Match, so once we replaced the record, none of them
// can apply; the record is therefore replaced and never deleted. The first PUT (If-None-Match: *) may also arrive late, but
// a process that never saw it applied never claimed a cell.
import type { Bucket } from "@cellkit/bucket";
import { expiredLease, isLeaseKey, type Lease, leasePrefix, parseLease } from "./core/lease-record.ts";
import { pause } from "./pause.ts";

const decoder = new TextDecoder();

/** The keys of all lease records in the bucket. */
export async function listLeases(bucket: Bucket, signal?: AbortSignal): Promise<Set<string>> {
  const keys = new Set<string>();
  for await (const entry of bucket.list(leasePrefix, { signal })) {
    if (isLeaseKey(entry.key)) keys.add(entry.key);
  }
  return keys;
}

/** The record of a lease, or undefined when it is gone or not understood. */
export async function readLease(
  bucket: Bucket,
  key: string,
  signal?: AbortSignal,
): Promise<Lease | undefined> {
  const stored = await bucket.get(key, { signal });
  return stored === undefined ? undefined : parseLease(decoder.decode(stored.body));
}

/** The lease that carries our address and was not there before our process started. */
export async function findLease(
  bucket: Bucket,
  address: string,
  before: ReadonlySet<string>,
): Promise<string | undefined> {
  for (const key of await listLeases(bucket)) {
    if (before.has(key)) continue;
    if ((await readLease(bucket, key))?.address === address) return key;
  }
  return undefined;
}

/** What became of a dead process's lease. `unknown`: not a record that we understand; it lapses by itself. */
export type LeaseEnd = "expired" | "gone" | "unknown";

/**
 * Expires the lease of a process that is proven dead, by conditional writes only; repeats while late writes of the dead
 * process come in between.
 *
 * @throws BucketError when the bucket cannot be reached, and what `signal` was aborted with
 */
export async function expireLease(bucket: Bucket, key: string, signal: AbortSignal): Promise<LeaseEnd> {
  for (;;) {
    signal.throwIfAborted();
    const stored = await bucket.get(key, { signal });
    if (stored === undefined) return "gone";
    const text = decoder.decode(stored.body);
    if (parseLease(text)?.expiresMs === 1) return "expired";
    const expired = expiredLease(text);
    if (expired === undefined) return "unknown";
    const write = await bucket.replaceIf(key, expired, stored.etag, { signal });
    const outcome = write.kind === "ambiguous" ? await write.settle({ signal }) : write;
    if (outcome.kind === "applied") return "expired";
    await pause(20, signal);
  }
}
