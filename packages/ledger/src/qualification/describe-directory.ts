/** What a directory is on, for people and for commands that warn. */
import { readFile, realpath, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { type FileSystem, fileSystemOf } from "../posix/file-systems.ts";
import { LOCK_NAME } from "../posix/ledger-directory.ts";

/** A directory's surroundings. */
export interface DirectoryPlace {
  fileSystem: FileSystem;
  /** Where that file system is mounted; undefined where it cannot be told (off Linux). */
  mountPoint: string | undefined;
  /** Whom the ledger there belongs to: the user of its lock file, else of the directory. */
  userId: number;
  groupId: number;
}

/** Undefined if there is no such directory. Rejects with the system's error. Changes nothing. */
export async function describeDirectory(directory: string): Promise<DirectoryPlace | undefined> {
  const real = await realpath(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
    throw error;
  });
  if (real === undefined) return undefined;
  const { type } = await statfs(real);
  const owned = await stat(join(real, LOCK_NAME)).catch(() => stat(real));
  return {
    fileSystem: fileSystemOf(type),
    mountPoint: await mountPointOf(real),
    userId: owned.uid,
    groupId: owned.gid,
  };
}

/** The innermost mount that a real path lies in; the last one listed hides those before it. */
async function mountPointOf(path: string): Promise<string | undefined> {
  const table = await readFile("/proc/self/mountinfo", "utf8").catch(() => "");
  let found: string | undefined;
  for (const line of table.split("\n")) {
    const point = line
      .split(" ")[4]
      ?.replaceAll(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));
    if (point === undefined) continue;
    const holds = path === point || path.startsWith(point === "/" ? "/" : `${point}/`);
    if (holds && point.length >= (found?.length ?? 0)) found = point;
  }
  return found;
}
