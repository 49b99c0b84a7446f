// Whether the data directory is still there. workerd goes on without it, holds its lease and answers `/ready`, while every
// call to a cell that is not open already fails.
import type { DataDirectory } from "./data-directory.ts";
import { DataDirectoryError } from "./errors.ts";
import { pause } from "./pause.ts";

const watchMs = 1000;

/** Looks once a second; resolves with what is wrong as soon as something is. @throws the signal's reason */
export async function watchDirectory(
  directory: DataDirectory,
  signal: AbortSignal,
): Promise<DataDirectoryError> {
  for (;;) {
    await pause(watchMs, signal);
    try {
      await directory.check();
    } catch (error) {
      if (error instanceof DataDirectoryError) return error;
      throw error;
    }
  }
}
