// Who uses a data directory, as the kernel knows it: the node and its workerd hold a lock on one open file there, and the
// kernel drops it with the last of them, however they end and whatever process namespace they were in. A container that is
// started again cannot see the processes of the one before, but it sees this.
import { open, statfs } from "node:fs/promises";
import { join } from "node:path";
import { tryLock } from "@cellkit/bucket/flock";
import { attempt } from "./data-directory.ts";
import { DataDirectoryError } from "./errors.ts";
import { pause } from "./pause.ts";
import { isOfThisBoot, type ProcessIdentity } from "./process-identity.ts";

/**
 * File systems of this machine's own kernel (statfs(2)): ext4, XFS, Btrfs, F2FS, ZFS, tmpfs. On a network a server may drop
 * the lock of a process that still runs, and an overlay that is mounted anew forgets it.
 */
const localFileSystems: readonly number[] = [
  0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x2fc12fc1, 0x01021994,
];
const takePollMs = 5;
/** How long processes may take to be gone that are being ended. */
const defaultPatienceMs = 10_000;

/** Which file a lock is on. */
export interface LockFile {
  readonly device: number;
  readonly inode: number;
}

/** The lock file of a data directory, open. */
export interface DirectoryLock {
  /** For workerd to inherit. */
  readonly fd: number;
  /** Which file it is: another one in its place proves nothing. */
  readonly file: LockFile;
  /**
   * Waits until the lock is ours.
   *
   * @throws DataDirectoryError (CELLKIT_ENGINE_DATA_DIRECTORY) when another node still has it after that time
   */
  take(signal: AbortSignal): Promise<void>;
  /** Lets go; workerd may still hold on. Idempotent. */
  close(): Promise<void>;
}

/**
 * Opens the lock file of a data directory; undefined where a lock would prove nothing.
 *
 * @param patienceMs how long `take` waits
 * @throws DataDirectoryError (CELLKIT_ENGINE_DATA_DIRECTORY)
 */
export async function openDirectoryLock(
  path: string,
  patienceMs = defaultPatienceMs,
): Promise<DirectoryLock | undefined> {
  const { type } = await attempt(path, () => statfs(path));
  if (process.platform !== "linux" || !localFileSystems.includes(type)) return undefined;
  const handle = await attempt(path, () => open(join(path, "lock"), "a", 0o600));
  const { dev, ino } = await handle.stat();
  return {
    fd: handle.fd,
    file: { device: dev, inode: ino },
    take: async (signal) => {
      const endMs = performance.now() + patienceMs;
      while (!tryLock(handle.fd)) {
        if (performance.now() >= endMs) {
          throw new DataDirectoryError(
            `the data directory ${path} is in use by another node, perhaps in another container: give each a directory of its own`,
          );
        }
        await pause(takePollMs, signal);
      }
    },
    close: () => handle.close(),
  };
}

/**
 * Whether a process that is not to be seen from here, but held the lock, is gone: on the kernel that it ran on, the lock is
 * ours only once it is. Waits for that.
 *
 * @throws DataDirectoryError (CELLKIT_ENGINE_DATA_DIRECTORY) when it still holds the lock after the lock's patience
 */
export async function lockProvesDeath(
  lock: DirectoryLock | undefined,
  former: { readonly child: ProcessIdentity; readonly lock?: LockFile | undefined },
  signal: AbortSignal,
): Promise<boolean> {
  if (lock === undefined || !(await isOfThisBoot(former.child))) return false;
  if (former.lock?.device !== lock.file.device || former.lock.inode !== lock.file.inode) return false;
  await lock.take(signal);
  return true;
}
