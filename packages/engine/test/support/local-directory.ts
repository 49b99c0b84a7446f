import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDirectoryLock } from "../../src/directory-lock.ts";

/** A directory on a file system whose locks are proofs: inside a container the temporary one may lie on an overlay. */
export async function makeLocalDirectory(): Promise<string> {
  for (const parent of [tmpdir(), "/dev/shm"]) {
    const directory = await mkdtemp(join(parent, "cellkit-lock-"));
    const lock = await openDirectoryLock(directory);
    await lock?.close();
    if (lock !== undefined) return directory;
    await rm(directory, { recursive: true });
  }
  throw new TypeError("there is no local file system here to test the lock on");
}
