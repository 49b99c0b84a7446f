/** Opens a ledger in another process, from what can be told it as JSON. */
import { openBucket } from "@cellkit/bucket";
import { openBucketLedger } from "../../src/bucket/open-bucket-ledger.ts";
import type { LedgerOptions, StoredLedger } from "../../src/ledger.ts";
import { openPosixLedger } from "../../src/posix/open-posix-ledger.ts";

/** `url`: of a directory, of a bucket, or of a database. */
export interface LedgerPlace {
  store: "posix" | "bucket" | "postgres";
  url: string;
  name: string;
}

export async function openAt(
  { store, url, name }: LedgerPlace,
  options: LedgerOptions,
): Promise<StoredLedger> {
  switch (store) {
    case "posix":
      return openPosixLedger({ ...options, directory: url, name, lockTimeoutMs: 30_000 });
    case "bucket":
      return openBucketLedger({ ...options, bucket: openBucket(url), name, closeBucket: true });
    case "postgres": {
      const { openPostgresLedger } = await import("../../src/postgres/index.ts");
      return openPostgresLedger({ ...options, connection: url, name, timeoutMs: 30_000 });
    }
  }
}
