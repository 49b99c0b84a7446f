// The file of an import: a path, or what comes in on standard input, which has to be read twice.
import { createReadStream, createWriteStream } from "node:fs";
import { constants, mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { ImportFileError } from "./errors.ts";

/** A file that can be read from its beginning as often as wanted. */
export interface ImportFile {
  read(): AsyncIterable<Uint8Array>;
  /** Removes what was put aside. */
  close(): Promise<void>;
}

/** @throws ImportFileError (`CELLKIT_CLI_IMPORT_FILE`) for a file that cannot be read */
export async function openImportFile(path: string, signal: AbortSignal): Promise<ImportFile> {
  if (path === "-") return spool(signal);
  try {
    // A pipe that nobody writes to would keep the process, whatever its signals.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const kind = await file.stat();
    await file.close();
    if (kind.isDirectory()) throw new ImportFileError(path, "it is a directory");
    if (!kind.isFile())
      throw new ImportFileError(
        path,
        "it is no file that can be read twice: let it be standard input, with - < FILE",
      );
  } catch (cause) {
    if (cause instanceof ImportFileError) throw cause;
    throw new ImportFileError(path, (cause as NodeJS.ErrnoException).code ?? String(cause), { cause });
  }
  return { read: () => createReadStream(path), close: async () => undefined };
}

/** Standard input, put into a file that only this user can read. */
async function spool(signal: AbortSignal): Promise<ImportFile> {
  const directory = await mkdtemp(join(tmpdir(), "cellkit-import-"));
  const path = join(directory, "bindings.ndjson");
  const close = () => rm(directory, { recursive: true, force: true });
  try {
    await pipeline(process.stdin, createWriteStream(path, { mode: 0o600 }), { signal });
  } catch (error) {
    await close();
    throw error;
  }
  return { read: () => createReadStream(path), close };
}
