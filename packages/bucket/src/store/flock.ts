/**
 * flock(2) of libc. flock and not fcntl: its lock belongs to the open file, so that two stores in one process exclude
 * each other as two processes do, and the kernel drops it when a process dies, however it dies.
 */
import { constants } from "node:os";
import koffi from "koffi";
import { BucketDiskError } from "../errors.ts";

const LOCK_SH = 1;
const LOCK_EX = 2;
const LOCK_NB = 4;
const LOCK_UN = 8;

let flock: ((fd: number, operation: number) => number) | undefined;

function call(fd: number, operation: number): boolean {
  flock ??= koffi.load(null).func("int flock(int fd, int operation)") as (
    fd: number,
    operation: number,
  ) => number;
  for (;;) {
    if (flock(fd, operation) === 0) return true;
    const errno = koffi.errno();
    if (errno === constants.errno.EWOULDBLOCK) return false;
    if (errno !== constants.errno.EINTR)
      throw new BucketDiskError(`(lock file ${fd})`, `flock failed, errno ${errno}`);
  }
}

/**
 * Takes the lock if nobody holds it; never waits. Answers whether it was taken. About 1 µs.
 * @param fd of the open file; a process that inherits it holds the lock, too
 * @throws BucketDiskError (CELLKIT_BUCKET_DISK) where the file system has no such locks
 */
export function tryLock(fd: number, mode: "exclusive" | "shared" = "exclusive"): boolean {
  return call(fd, (mode === "exclusive" ? LOCK_EX : LOCK_SH) | LOCK_NB);
}

/** Gives the lock back, for every process that inherited it. @param fd as for {@link tryLock} */
export function unlock(fd: number): void {
  call(fd, LOCK_UN);
}
