/** Makes sure that the directory is there and durable, all the way up. */
import { constants } from "node:fs";
import { realpath } from "node:fs/promises";
import { dirname } from "node:path";
import { makeDirectory } from "@cellkit/bucket/directory";
import { LedgerUnavailableError, LedgerUnsupportedError } from "../errors.ts";
import { diskFailure, errnoOf, quietly } from "./disk-failure.ts";
import type { FileCalls } from "./file-calls.ts";

/** What fsync(2) answers where a file system does not do it for directories. */
const NO_SYNC = new Set(["EINVAL", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "ENOTTY"]);

/**
 * Creates the directory with its parents, resolves symbolic links, and makes every entry on the way durable, as the
 * original does: each directory up to `/` must be open to this user for reading.
 * @returns the real path
 * @throws LedgerUnsupportedError where directories cannot be made durable; LedgerUnavailableError for any other failure
 */
export async function prepareDirectory(directory: string, url: string, calls: FileCalls): Promise<string> {
  let real: string;
  try {
    await makeDirectory(directory);
    real = await realpath(directory);
  } catch (error) {
    // mkdir(2) on a file, and below one.
    if (["EEXIST", "ENOTDIR"].includes(errnoOf(error) ?? ""))
      throw new LedgerUnavailableError(
        url,
        `${directory} is a file, or lies below one, and a ledger's place is a directory: give that`,
        "no",
        { cause: error },
      );
    throw diskFailure(url, `make the directory ${directory}`, error, "no");
  }
  for (let at = real; ; at = dirname(at)) {
    await syncDirectory(at, url, calls);
    if (at === dirname(at)) return real;
  }
}

async function syncDirectory(path: string, url: string, calls: FileCalls): Promise<void> {
  let fd: number;
  try {
    fd = await calls.open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  } catch (error) {
    throw diskFailure(url, `open the directory ${path}`, error, "no");
  }
  try {
    await calls.fsync(fd);
  } catch (error) {
    if (NO_SYNC.has(errnoOf(error) ?? ""))
      throw new LedgerUnsupportedError(
        url,
        `the file system of ${path} does not make directories durable (fsync)`,
        { cause: error },
      );
    throw diskFailure(url, `make the directory ${path} durable`, error, "no");
  } finally {
    await quietly(calls.close(fd));
  }
}
