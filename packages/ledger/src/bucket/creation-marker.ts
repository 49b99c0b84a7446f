/** The object that says that a ledger was created here, and which one it is. */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { LedgerMissingError, LedgerUnsupportedError } from "../errors.ts";
import type { LedgerStore } from "./store.ts";

const LIMIT_BYTES = 4_096;
const marker = z.object({ format: z.literal(1), ledgerId: z.uuid() });

/**
 * Finds the ledger's id, or makes it.
 * @throws LedgerMissingError when it is not there and must be; LedgerUnsupportedError when it is another format's
 */
export async function openCreationMarker(
  store: LedgerStore,
  { requireExisting, signal }: { requireExisting: boolean; signal?: AbortSignal | undefined },
): Promise<string> {
  const found = await read(store, signal);
  if (found !== undefined) return found;
  if (requireExisting) throw new LedgerMissingError(store.url, "it has no ledger.json");
  const ledgerId = randomUUID();
  const bytes = Buffer.from(`${JSON.stringify({ format: 1, ledgerId })}\n`);
  await store.write(store.keys.creation, bytes, undefined, signal);
  // Somebody else's counts if theirs came first.
  const made = await read(store, signal);
  if (made === undefined)
    throw new LedgerUnsupportedError(store.url, "what was written cannot be read at once");
  return made;
}

async function read(store: LedgerStore, signal: AbortSignal | undefined): Promise<string | undefined> {
  const object = await store.guard(signal, "no", () =>
    store.bucket.get(store.keys.creation, { signal, maxBytes: LIMIT_BYTES }),
  );
  if (object === undefined) return undefined;
  try {
    return marker.parse(JSON.parse(Buffer.from(object.body).toString("utf8"))).ledgerId;
  } catch (cause) {
    throw new LedgerUnsupportedError(store.url, "its ledger.json is not of this version", { cause });
  }
}
