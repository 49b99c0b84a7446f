// Notes in a folder of the ledger's directory. Not beside the records: a change of that directory would make replicas count them anew.
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { maxNoteBytes } from "./fingerprint.ts";
import { maxNoteCount, notePrefix, type ReplicaNote, type ReplicaNotes, replicaOf } from "./replica-notes.ts";

/** A name that a ledger could have, so that whoever looks for foreign things passes it by. */
const folder = "cellkit-router";
/** None that means anything to a ledger, ours or the original's. */
const extension = ".fingerprint";
/** Behind it while a note is written. */
const staging = ".next";

/** Notes in the directory of a POSIX ledger. */
export function directoryNotes(directory: string): ReplicaNotes {
  const path = join(directory, folder);
  const fileOf = (replica: string) => join(path, `${notePrefix}${replica}${extension}`);
  return {
    async write(replica, text) {
      // The directory is the ledger's to make: where it is missing, that is a failure to be told.
      await mkdir(path, { mode: 0o700 }).catch(ignore("EEXIST"));
      const staged = `${fileOf(replica)}${staging}`;
      const file = await open(staged, "w", 0o600);
      try {
        await file.writeFile(text);
      } finally {
        await file.close();
      }
      await rename(staged, fileOf(replica));
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
        if (replicaOfFile(name, `${extension}${staging}`) === undefined) continue;
        const found = await stat(join(path, name)).catch(ignore("ENOENT"));
        if (found !== undefined && found.mtimeMs < beforeMs) await rm(join(path, name), { force: true });
      }
    },
    close: async () => undefined,
  };
}

function replicaOfFile(name: string, ending: string): string | undefined {
  return name.endsWith(ending) ? replicaOf(name.slice(0, -ending.length)) : undefined;
}

/** undefined: its replica stopped meanwhile. */
async function readNote(path: string): Promise<{ text: string; writtenMs: number } | undefined> {
  const file = await open(path, "r").catch(ignore("ENOENT"));
  if (file === undefined) return undefined;
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(maxNoteBytes + 1), 0, maxNoteBytes + 1, 0);
    return { text: buffer.toString("utf8", 0, bytesRead), writtenMs: (await file.stat()).mtimeMs };
  } finally {
    await file.close();
  }
}

function ignore(code: string): (error: NodeJS.ErrnoException) => undefined {
  return (error) => {
    if (error.code !== code) throw error;
    return undefined;
  };
}
