// What a start does about the node that used this data directory before: ends its workerd when that outlived it, and ends
// its lease when its death is proven.
import { rm } from "node:fs/promises";
import type { Bucket } from "@cellkit/bucket";
import type { DataDirectory } from "./data-directory.ts";
import { type DirectoryLock, lockProvesDeath } from "./directory-lock.ts";
import type { EngineLog } from "./engine-options.ts";
import { DataDirectoryError } from "./errors.ts";
import { expireLease } from "./lease.ts";
import { pause } from "./pause.ts";
import { type ProcessIdentity, processFate } from "./process-identity.ts";

const killTimeoutMs = 10_000;

/**
 * Ends what is left of the predecessor.
 *
 * @throws DataDirectoryError (CELLKIT_ENGINE_DATA_DIRECTORY) when a live node uses the directory; errors of the bucket
 */
export async function endPredecessor(
  directory: DataDirectory,
  bucket: Bucket,
  log: EngineLog,
  signal: AbortSignal,
  lock: DirectoryLock | undefined,
): Promise<void> {
  const record = await directory.readRecord();
  if (record === undefined) return;
  const [owner, seen] = [await processFate(record.owner), await processFate(record.child)];
  const child = seen === "unknown" && (await lockProvesDeath(lock, record, signal)) ? "gone" : seen;
  if (owner === "alive" && child === "alive") {
    throw new DataDirectoryError(
      `the data directory is in use by process ${record.owner.pid}: give each node a directory of its own`,
    );
  }
  if (child === "unknown") {
    log.warn(
      { lease: record.leaseKey },
      "the former workerd cannot be proven dead; its cells wait for its lease to lapse",
    );
  } else {
    if (child === "alive") await endOrphan(record.child, log, signal);
    if (record.leaseKey !== undefined) {
      const end = await expireLease(bucket, record.leaseKey, signal);
      log.info({ lease: record.leaseKey, end }, "ended the lease of the former workerd of this directory");
    }
  }
  await rm(record.sockets, { recursive: true, force: true });
  await directory.deleteRecord();
}

async function endOrphan(child: ProcessIdentity, log: EngineLog, signal: AbortSignal): Promise<void> {
  log.warn({ workerdPid: child.pid }, "ending a workerd that outlived its node");
  kill(child.pid);
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(killTimeoutMs)]);
  while ((await processFate(child)) === "alive") await pause(10, deadline);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    // It ended by itself in the meantime.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
