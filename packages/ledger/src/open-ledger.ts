/** One address for every store, as a flag of a program gives it. */
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { BucketOptions } from "@cellkit/bucket";
import { checkConnectionUrl } from "./core/connection-url.ts";
import { LedgerOptionError } from "./errors.ts";
import type { LedgerOptions, LedgerReader, StoredLedger } from "./ledger.ts";

/** Options of {@link openLedger}. What does not concern the store that the address names is left aside. */
export interface OpenLedgerOptions extends LedgerOptions {
  /** POSIX directory: how long a claim waits for the ledger's lock. @default 2_000 */
  lockTimeoutMs?: number | undefined;
  /** POSIX directory: whether times of directories are coherent between machines, as `cellkit qualify ledger` shows. @default false */
  trustDirectoryTimes?: boolean | undefined;
  /** Bucket: how it is opened; endpoint, region, credentials. */
  bucket?: BucketOptions | undefined;
}

/** Which store an address names. */
export type LedgerLocation =
  | { kind: "posix"; directory: string }
  | { kind: "bucket"; url: string }
  | { kind: "postgres"; connection: string };

/**
 * A path or a `file:` URL is a POSIX directory, `s3:` (`gs:`, `az:`) a bucket, `postgres:` and `postgresql:` a database.
 * @throws LedgerOptionError (CELLKIT_LEDGER_OPTION) for anything else; the message shows nothing that may be a password
 */
export function parseLedgerUrl(url: string): LedgerLocation {
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(url)?.[1]?.toLowerCase();
  if (url === "") throw new LedgerOptionError("a ledger's address is a path or a URL, not an empty text");
  if (scheme === undefined) return { kind: "posix", directory: resolve(url) };
  switch (scheme) {
    case "file":
      try {
        return { kind: "posix", directory: resolve(fileURLToPath(url)) };
      } catch {
        // Neither shown nor kept as a cause: somebody may have taken it for the address of a server, with a password.
        throw new LedgerOptionError("this file: address is no path of this machine: give file:///DIRECTORY");
      }
    case "s3":
    case "gs":
    case "az":
      return { kind: "bucket", url };
    case "postgres":
    case "postgresql":
      checkConnectionUrl(url);
      return { kind: "postgres", connection: url };
    default:
      throw new LedgerOptionError(
        `no ledger lies at ${scheme}: give a directory, s3://BUCKET/PREFIX or postgres://HOST/DATABASE`,
      );
  }
}

/**
 * Opens the ledger at an address, in whichever store it is. Only that store's code is loaded; PostgreSQL needs the package `pg`.
 * @throws LedgerOptionError (CELLKIT_LEDGER_OPTION) for an address of no store, and what the store's own opener throws
 */
export async function openLedger(url: string, options: OpenLedgerOptions = {}): Promise<StoredLedger> {
  const location = parseLedgerUrl(url);
  const { lockTimeoutMs, trustDirectoryTimes, bucket: bucketOptions = {}, ...common } = options;
  switch (location.kind) {
    case "posix": {
      const { openPosixLedger } = await import("./posix/open-posix-ledger.ts");
      return openPosixLedger({
        ...common,
        directory: location.directory,
        ...(lockTimeoutMs === undefined ? {} : { lockTimeoutMs }),
        ...(trustDirectoryTimes === undefined ? {} : { trustDirectoryTimes }),
      });
    }
    case "bucket": {
      const { BucketError, openBucket } = await import("@cellkit/bucket");
      const { openBucketLedger } = await import("./bucket/open-bucket-ledger.ts");
      let bucket: ReturnType<typeof openBucket>;
      try {
        bucket = openBucket(location.url, bucketOptions);
      } catch (cause) {
        if (!(cause instanceof BucketError)) throw cause;
        throw new LedgerOptionError(cause.message, { cause });
      }
      try {
        return await openBucketLedger({ ...common, bucket, closeBucket: true });
      } catch (error) {
        await bucket.close();
        throw error;
      }
    }
    case "postgres": {
      const { openPostgresLedger } = await import("./postgres/index.ts");
      return openPostgresLedger({ ...common, connection: location.connection });
    }
  }
}

/**
 * Opens the ledger at an address to look at it: `entries`, `entry`, `exportLedger`, `verifyLedger`. Nothing is created or written. In a
 * directory a ledger of the original router needs no mark of its creation, one record will do; a copy or a read-only mount will do, too.
 * @throws LedgerMissingError (CELLKIT_LEDGER_MISSING) where there is none, and what {@link openLedger} throws
 */
export async function openLedgerReader(
  url: string,
  options: Pick<OpenLedgerOptions, "name" | "bucket"> = {},
): Promise<LedgerReader> {
  const location = parseLedgerUrl(url);
  if (location.kind !== "posix") return openLedger(url, { ...options, requireExisting: true });
  const { openPosixReader } = await import("./posix/posix-reader.ts");
  return openPosixReader({ directory: location.directory, name: options.name });
}
