// workerd's lease record, `v1/nodes/<32 hex>.json`: the process is a member of the cluster until `expires_ms`, and renews it
// with If-Match. Peers take over the cells of a member whose record is expired or gone.
import { z } from "zod";

/** Where the lease records of a cluster lie, relative to its prefix. */
export const leasePrefix = "v1/nodes/";

const schema = z.looseObject({
  node: z.string(),
  address: z.string(),
  expires_ms: z.number().int().nonnegative(),
  draining: z.boolean().default(false),
});

/** What we read in a lease record. */
export interface Lease {
  readonly node: string;
  readonly address: string;
  readonly expiresMs: number;
  readonly draining: boolean;
}

/** Whether a key is that of a lease record (workerd also writes probes beside them). */
export function isLeaseKey(key: string): boolean {
  return /^v1\/nodes\/[0-9a-f]{32}\.json$/.test(key);
}

/** Reads a record; undefined when it is not one that we understand. */
export function parseLease(text: string): Lease | undefined {
  const parsed = schema.safeParse(parseJson(text));
  if (!parsed.success) return undefined;
  const { node, address, expires_ms: expiresMs, draining } = parsed.data;
  return { node, address, expiresMs, draining };
}

/**
 * The same record, expired since 1970. Changed as text: its `instance` is a 64-bit number that JSON.parse would round.
 * Undefined when the record is not one that we understand.
 */
export function expiredLease(text: string): string | undefined {
  if (parseLease(text) === undefined) return undefined;
  const expired = text.replace(/("expires_ms"\s*:\s*)\d+/, "$11");
  return parseLease(expired)?.expiresMs === 1 ? expired : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
