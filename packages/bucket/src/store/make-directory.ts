import { mkdir, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { errnoOf } from "./disk-failure.ts";

/** Options of {@link makeDirectory}. */
export interface MakeDirectoryOptions {
  /** Permissions of each directory that is made, before the umask. @default 0o777 */
  readonly mode?: number;
}

/**
 * Makes a directory and those above it that are missing; one that is there stays as it is. Step by step: Node's recursive
 * mkdir never ends where a system answers ENOENT below a directory that is there, as Linux does in /proc.
 * @throws the system's error, whose message names the directory that could not be made
 */
export async function makeDirectory(path: string, options: MakeDirectoryOptions = {}): Promise<void> {
  const { mode = 0o777 } = options;
  const missing: string[] = [];
  let at = resolve(path);
  while (!(await makeOne(at, mode))) {
    missing.push(at);
    at = dirname(at);
  }
  for (const directory of missing.reverse()) await mkdir(directory, { mode }).catch(orThere(directory));
}

/** Answers false when the directory above is missing. */
async function makeOne(path: string, mode: number): Promise<boolean> {
  try {
    await mkdir(path, { mode }).catch(orThere(path));
    return true;
  } catch (error) {
    if (errnoOf(error) !== "ENOENT" || path === dirname(path)) throw error;
    return false;
  }
}

/** Takes a failure for none when the directory is there: another process may have made it. Which errno says so differs. */
function orThere(path: string): (error: unknown) => Promise<void> {
  return async (error) => {
    const found = await stat(path).catch(() => undefined);
    if (found?.isDirectory() !== true) throw error;
  };
}
