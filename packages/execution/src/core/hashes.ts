// BLAKE3 identities as text: `blake3:` and 64 hex digits. Requests may write them in upper case, everything else may not.
import { z } from "zod";

/** Whether a text is a hash as requests may write it: hex digits of both cases. */
export function isHash(text: string): boolean {
  return /^blake3:[0-9a-fA-F]{64}$/.test(text);
}

/** A hash as routers and dispatchers write it: lower case only. */
export const identity = z.string().regex(/^blake3:[0-9a-f]{64}$/, "is no lower-case blake3 identity");
