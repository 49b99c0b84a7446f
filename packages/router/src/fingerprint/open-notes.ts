import type { BucketOptions } from "@cellkit/bucket";
import { parseLedgerUrl } from "@cellkit/ledger";
import type { ReplicaNotes } from "./replica-notes.ts";

/** Opens the place for notes beside the ledger at an address. Only that store's code is loaded. */
export async function openNotes(url: string, bucket: BucketOptions): Promise<ReplicaNotes> {
  const location = parseLedgerUrl(url);
  switch (location.kind) {
    case "posix":
      return (await import("./directory-notes.ts")).directoryNotes(location.directory);
    case "bucket":
      return (await import("./bucket-notes.ts")).bucketNotes(location.url, bucket);
    case "postgres":
      return (await import("./postgres-notes.ts")).postgresNotes(location.connection);
  }
}
