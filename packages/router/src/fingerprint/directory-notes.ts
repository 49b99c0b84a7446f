// Notes in a folder of the ledger's directory. Not beside the records: a change of that directory would make replicas count them anew.
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { maxNoteBytes } from "./fingerprint.ts";
import { maxNoteCount, notePrefix, type ReplicaNote, type ReplicaNotes, replicaOf } from "./replica-notes.ts";

/** A name that a ledger could have, so that whoever looks for foreign things passes it by. */
const folder = "cellkit-router";
/** None that means anything to a ledger, ours or the original's. */
const extension = ".fingerprint";
/** Behind it while a note is written: a name of its own each time, so that what stands there beforehand is never written to. */
const staged = /\.fingerprint(?:\.[0-9a-f-]{36})?\.next$/;
/** Neither a pipe that nobody writes to, nor a link to somewhere else. */
const plainly = constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Notes in the directory of a POSIX ledger. */
export function directoryNotes(directory: string): ReplicaNotes {
  const path = join(directory, folder);
  const fileOf = (replica: string) => join(path, `${notePrefix}${replica}${extension}`);
  return {
    async write(replica, text) {
      // The directory is the ledger's to make: where it is missing, that is a failure to be told.
      await mkdir(path, { mode: 0o700 }).catch(ignore("EEXIST"));
      const next = `${fileOf(replica)}.${randomUUID()}.next`;
      const file = await open(
        next,
        constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | plainly,
        0o600,
      );
      try {
        await file.writeFile(text).finally(() => file.close());
        await rename(next, fileOf(replica));
      } catch (error) {
        await rm(next, { force: true });
        throw error;
      }
    },
    async list() {
      const replicas = (await readdir(path)).flatMap((name) => replicaOfFile(name, extension) ?? []);
      const notes: ReplicaNote[] = [];
      for (const replica of replicas.slice(0, maxNoteCount)) {
        const note = await readNote(fileOf(replica));
        if (note !== undefined) notes.push({ replica, ...note });
      }
      return notes;
    },
    remove: (replica) => rm(fileOf(replica), { force: true }),
    async sweep(beforeMs) {
      for (const name of await readdir(path)) {
        if (!name.startsWith(notePrefix) || !staged.test(name)) continue;
        const found = await lstat(join(path, name)).catch(ignore("ENOENT"));
        if (found !== undefined && found.mtimeMs < beforeMs) await rm(join(path, name), { force: true });
      }
    },
    close: async () => undefined,
  };
}

function replicaOfFile(name: string, ending: string): string | undefined {
  return name.endsWith(ending) ? replicaOf(name.slice(0, -ending.length)) : undefined;
}

/** undefined: its replica stopped meanwhile, or it is no file. */
async function readNote(path: string): Promise<{ text: string; writtenMs: number } | undefined> {
  const file = await open(path, constants.O_RDONLY | plainly).catch(ignore("ENOENT", "ELOOP", "ENXIO"));
  if (file === undefined) return undefined;
  try {
    const stat = await file.stat();
    return stat.isFile() ? { text: await readText(file), writtenMs: stat.mtimeMs } : undefined;
  } finally {
    await file.close();
  }
}

async function readText(file: FileHandle): Promise<string> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(maxNoteBytes + 1), 0, maxNoteBytes + 1, 0);
  return buffer.toString("utf8", 0, bytesRead);
}

function ignore(...codes: readonly string[]): (error: NodeJS.ErrnoException) => undefined {
  return (error) => {
    if (!codes.includes(error.code ?? "")) throw error;
    return undefined;
  };
}
