// Notes in the bucket of a ledger, beside the folder of its records.
import { type BucketOptions, openBucket } from "@cellkit/bucket";
import { maxNoteBytes } from "./fingerprint.ts";
import { maxNoteCount, notePrefix, type ReplicaNote, type ReplicaNotes, replicaOf } from "./replica-notes.ts";

const folder = "router/executions/";

/** Notes in the bucket at `url`. */
export function bucketNotes(url: string, options: BucketOptions): ReplicaNotes {
  const bucket = openBucket(url, options);
  const keyOf = (replica: string) => `${folder}${notePrefix}${replica}`;
  return {
    async write(replica, text) {
      await bucket.put(keyOf(replica), text);
    },
    async list() {
      const notes: ReplicaNote[] = [];
      for await (const listed of bucket.list(folder)) {
        if (!("etag" in listed) || listed.sizeBytes > maxNoteBytes) continue;
        if (notes.length >= maxNoteCount) break;
        const replica = replicaOf(listed.key.slice(folder.length));
        const object = replica === undefined ? undefined : await bucket.get(listed.key);
        // A replica that stopped meanwhile took its note along.
        if (replica === undefined || object === undefined) continue;
        notes.push({ replica, text: Buffer.from(object.body).toString(), writtenMs: listed.modifiedMs });
      }
      return notes;
    },
    remove: (replica) => bucket.delete(keyOf(replica)),
    close: () => bucket.close(),
  };
}
