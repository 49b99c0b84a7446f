// Which workerd processes of the cluster have a lease, by the address under which peers dial them. Ownership hangs on these
// leases: one that has lapsed belongs to a process that owns nothing any more, or that will find out when it wakes up.
import type { Bucket } from "@cellkit/bucket";
import { listLeases, readLease } from "./lease.ts";

/** Reads the leases of the other processes; remembers whose they are, since a lease never changes its address. */
export class ClusterLeases {
  readonly #bucket: Bucket;
  readonly #addresses = new Map<string, string>();

  constructor(bucket: Bucket) {
    this.#bucket = bucket;
  }

  /**
   * Until when the process at an address has its lease, in milliseconds since the Unix epoch; undefined when no process
   * has one there. Of several (a former process at the same address) the one that holds longest counts.
   *
   * @throws BucketError when the bucket does not answer: that says nothing about the lease
   */
  async expiryMs(address: string, signal?: AbortSignal): Promise<number | undefined> {
    const keys = await listLeases(this.#bucket, signal);
    for (const known of this.#addresses.keys()) if (!keys.has(known)) this.#addresses.delete(known);
    let longest: number | undefined;
    for (const key of keys) {
      if ((this.#addresses.get(key) ?? address) !== address) continue;
      const lease = await readLease(this.#bucket, key, signal);
      if (lease === undefined) continue;
      this.#addresses.set(key, lease.address);
      if (lease.address === address) longest = Math.max(longest ?? 0, lease.expiresMs);
    }
    return longest;
  }
}
