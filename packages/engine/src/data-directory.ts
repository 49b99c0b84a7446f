// What a node keeps on its own disk: workerd's config, its copy of the cells, and a record of the process that uses them,
// so that the next start can prove that process dead.
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeDirectory } from "@cellkit/bucket/directory";
import { z } from "zod";
import { DataDirectoryError } from "./errors.ts";

const identitySchema = z.object({
  pid: z.number().int().positive(),
  startTicks: z.string(),
  bootId: z.string(),
  namespace: z.string(),
});
const recordSchema = z.object({
  /** The process that owned the engine. */
  owner: identitySchema,
  /** Its workerd. */
  child: identitySchema,
  /** The advertised address of that workerd. */
  advertise: z.string(),
  /** The directory of its unix sockets. */
  sockets: z.string(),
  /** The file whose lock that workerd inherited. */
  lock: z.object({ device: z.number(), inode: z.number() }).optional(),
  /** The key of its lease record, once known. */
  leaseKey: z.string().optional(),
});

/** The record of a running or former workerd of this data directory. */
type ChildRecord = z.infer<typeof recordSchema>;

/** A file for workerd. */
export interface ConfigFile {
  readonly name: string;
  readonly content: string | Uint8Array;
}

/** The paths in a data directory, and what is kept there. */
export interface DataDirectory {
  /** workerd's own storage. */
  readonly cells: string;
  /** Config, modules and credentials for workerd. */
  readonly config: string;
  /**
   * Throws when the directory is not the one that was opened any more: deleted, moved, mounted over, or on a dead disk.
   *
   * @throws DataDirectoryError (CELLKIT_ENGINE_DATA_DIRECTORY)
   */
  check(): Promise<void>;
  /** Replaces everything in `config` by these files (0600). */
  writeConfig(files: readonly ConfigFile[]): Promise<void>;
  /** Replaces one file in `config` in one step, if it is there and differs; answers whether it was replaced. */
  replaceConfig(file: ConfigFile): Promise<boolean>;
  /** Removes everything in `config`: it holds keys and secrets. */
  deleteConfig(): Promise<void>;
  readRecord(): Promise<ChildRecord | undefined>;
  writeRecord(record: ChildRecord): Promise<void>;
  deleteRecord(): Promise<void>;
}

/**
 * Opens a data directory, making it (0700) when it is absent.
 *
 * @throws DataDirectoryError (CELLKIT_ENGINE_DATA_DIRECTORY)
 */
export async function openDataDirectory(path: string): Promise<DataDirectory> {
  const recordFile = join(path, "engine.json");
  const cells = join(path, "cells");
  const config = join(path, "workerd");
  await attempt(path, async () => {
    for (const directory of [path, cells]) await makeDirectory(directory, { mode: 0o700 });
  });
  // The directory of the cells stands for all: workerd holds its files open, and whoever deletes the whole deletes it.
  const opened = await attempt(path, () => stat(cells));
  return {
    cells,
    config,
    check: async () => {
      const found = await attempt(path, () => stat(cells));
      if (found.dev === opened.dev && found.ino === opened.ino) return;
      throw new DataDirectoryError(
        `the data directory ${path} was replaced while the node ran: start the node again on a directory that stays`,
      );
    },
    writeConfig: (files) =>
      attempt(path, async () => {
        await rm(config, { recursive: true, force: true });
        await mkdir(config, { mode: 0o700 });
        for (const { name, content } of files) await writeFile(join(config, name), content, { mode: 0o600 });
      }),
    replaceConfig: ({ name, content }) =>
      attempt(path, async () => {
        const file = join(config, name);
        const found = await readFile(file).catch(() => undefined);
        if (found === undefined || found.equals(Buffer.from(content))) return false;
        await replaceFile(file, content);
        return true;
      }),
    deleteConfig: () => attempt(path, () => rm(config, { recursive: true, force: true })),
    readRecord: async () => {
      const text = await readFile(recordFile, "utf8").catch(() => undefined);
      if (text === undefined) return undefined;
      // A record that cannot be read proves nothing about anybody; the lease then lapses by itself.
      return recordSchema.safeParse(parseJson(text)).data;
    },
    writeRecord: (record) => attempt(path, () => replaceFile(recordFile, `${JSON.stringify(record)}\n`)),
    deleteRecord: () => attempt(path, () => rm(recordFile, { force: true })),
  };
}

async function replaceFile(file: string, content: string | Uint8Array): Promise<void> {
  const draft = `${file}.new`;
  await writeFile(draft, content, { mode: 0o600 });
  await rename(draft, file);
}

/** Does something with the files of a data directory; what fails there (a full disk, for example) is the directory's fault. */
export async function attempt<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : String(cause);
    throw new DataDirectoryError(
      `the data directory ${path} cannot be used: ${detail}; mend that, or give the node another directory`,
      { cause },
    );
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
