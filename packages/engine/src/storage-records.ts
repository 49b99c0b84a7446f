// The two records that every node of a fleet shares: which engine and format this prefix belongs to, and workerd's cluster
// key. Both are written once, by whichever node comes first; everybody else takes what is there.
import { randomBytes } from "node:crypto";
import type { Bucket } from "@cellkit/bucket";
import { z } from "zod";
import { EngineStorageError } from "./errors.ts";

const formatKey = "cellkit/format.json";
const clusterKeyKey = "fleet/cluster-auth.json";
/** What this engine writes; another text in the record means that this prefix is not ours to touch. */
const storageFormat = { engine: "workerd-cluster", format: 1 } as const;

const formatSchema = z.looseObject({ engine: z.string(), format: z.number() });
const clusterKeySchema = z.looseObject({ key: z.string().regex(/^[0-9a-f]{64}$/) });
/** Where an original celld keeps its cells and leases. A node of ours claims the prefix before it writes under `nodes/`. */
const foreignPrefixes = ["cells/", "nodes/"];
const decoder = new TextDecoder();

/**
 * Makes sure that the prefix is this engine's, claiming it when it is empty.
 *
 * @throws EngineStorageError (CELLKIT_ENGINE_STORAGE), errors of the bucket
 */
export async function claimStorage(bucket: Bucket, signal?: AbortSignal): Promise<void> {
  let stored = await bucket.get(formatKey, { signal });
  if (stored === undefined) {
    const foreign = await foreignPrefix(bucket, signal);
    // Looked at again behind the records: a node of ours that starts at the same time claims the prefix before it writes any.
    stored = await bucket.get(formatKey, { signal });
    if (stored === undefined) {
      if (foreign !== undefined) {
        throw new EngineStorageError(
          `${bucket.url} holds ${foreign}… of an original celld: give this fleet a prefix of its own`,
        );
      }
      await createOnce(bucket, formatKey, storageFormat, signal);
      stored = await bucket.get(formatKey, { signal });
    }
  }
  const record = formatSchema.safeParse(parseJson(stored?.body));
  if (!record.success) {
    throw new EngineStorageError(
      `${formatKey} in ${bucket.url} cannot be read: give this fleet a prefix of its own`,
    );
  }
  if (record.data.engine !== storageFormat.engine || record.data.format !== storageFormat.format) {
    throw new EngineStorageError(
      `${bucket.url} belongs to the engine ${record.data.engine}, format ${record.data.format}; this node runs ` +
        `${storageFormat.engine}, format ${storageFormat.format}: use the cellkit that wrote it, or another prefix`,
    );
  }
}

/** The first prefix under which an original celld would keep something, and under which there is something. */
async function foreignPrefix(bucket: Bucket, signal?: AbortSignal): Promise<string | undefined> {
  for (const prefix of foreignPrefixes) {
    for await (const _ of bucket.list(prefix, { signal })) return prefix;
  }
  return undefined;
}

/**
 * The fleet's cluster key, made by the first node. It never leaves the bucket and 0600 files.
 *
 * @throws EngineStorageError (CELLKIT_ENGINE_STORAGE) when the record cannot be read, errors of the bucket
 */
export async function clusterKey(bucket: Bucket, signal?: AbortSignal): Promise<string> {
  let stored = await bucket.get(clusterKeyKey, { signal });
  if (stored === undefined) {
    await createOnce(bucket, clusterKeyKey, { key: randomBytes(32).toString("hex") }, signal);
    // Whoever won: the stored key is the fleet's.
    stored = await bucket.get(clusterKeyKey, { signal });
  }
  const record = clusterKeySchema.safeParse(parseJson(stored?.body));
  if (!record.success) {
    throw new EngineStorageError(
      `${clusterKeyKey} in ${bucket.url} holds no cluster key: stop the fleet, delete that object, start again`,
    );
  }
  return record.data.key;
}

async function createOnce(bucket: Bucket, key: string, value: object, signal?: AbortSignal): Promise<void> {
  const write = await bucket.createIfAbsent(key, `${JSON.stringify(value)}\n`, { signal });
  if (write.kind === "ambiguous") await write.settle({ signal });
}

function parseJson(body: Uint8Array | undefined): unknown {
  try {
    return JSON.parse(decoder.decode(body));
  } catch {
    return undefined;
  }
}
