import { randomUUID } from "node:crypto";
import { closeSync, openSync, writeSync } from "node:fs";
import { link, mkdir, open, readdir, readFile, rename, rm, unlink } from "node:fs/promises";
import { join } from "node:path";
import { auditSchema, parseJson, recordSchema, stringifyJson } from "@cellkit/execution";
import { JournalError } from "../errors.ts";
import type { Identity } from "./hash.ts";
import type { Journal, JournalEntry } from "./journal.ts";
import { readRuns, runsFile } from "./runs.ts";

const entriesDirectory = "execution-journal";
/** BLAKE3 of the id. */
const entryName = /^[0-9a-f]{64}\.json$/;

/**
 * A journal in files, laid out and published as a dispatcher's: `execution-journal/<blake3 of the id>.json`, each written
 * aside, fsynced, given its name without replacing another, and the directory fsynced. Beside it stands `runs.jsonl`, which
 * dispatchers do not have: a line for each start of an execution. It is there to outlive a killed process, not a power cut.
 */
export class DirectoryJournal implements Journal {
  readonly #directory: string;
  readonly #identity: Identity;
  readonly #runsDescriptor: number;
  readonly runs: Map<string, number>;

  private constructor(directory: string, identity: Identity, descriptor: number, runs: Map<string, number>) {
    this.#directory = directory;
    this.#identity = identity;
    this.#runsDescriptor = descriptor;
    this.runs = runs;
  }

  /** @throws {@link JournalError} (`CELLKIT_TESTING_JOURNAL`) when the directory is another's; then nothing was written to it */
  static async open(root: string, identity: Identity): Promise<DirectoryJournal> {
    const directory = join(root, entriesDirectory);
    await holdsNothingElse(root, (name) => name === entriesDirectory || name === runsFile);
    await holdsNothingElse(directory, (name) => name === "staging" || entryName.test(name));
    const runs = new Map(await readRuns(root));
    try {
      await mkdir(join(directory, "staging"), { recursive: true });
      return new DirectoryJournal(directory, identity, openSync(join(root, runsFile), "a"), runs);
    } catch (cause) {
      throw new JournalError(root, "cannot be written to", { cause });
    }
  }

  async load(): Promise<JournalEntry[]> {
    const names = (await readdir(this.#directory)).filter((name) => name.endsWith(".json"));
    return Promise.all(names.map((name) => readEntry(join(this.#directory, name))));
  }

  async claim(entry: JournalEntry): Promise<void> {
    const staged = await this.#stage(entry);
    try {
      await link(staged, this.#pathOf(entry));
    } finally {
      await unlink(staged);
    }
    await this.#sync();
  }

  async update(entry: JournalEntry): Promise<void> {
    await rename(await this.#stage(entry), this.#pathOf(entry));
    await this.#sync();
  }

  async lose(): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true });
    await mkdir(join(this.#directory, "staging"), { recursive: true });
  }

  started(id: string): void {
    writeSync(this.#runsDescriptor, `${JSON.stringify({ id })}\n`);
    this.runs.set(id, (this.runs.get(id) ?? 0) + 1);
  }

  async close(): Promise<void> {
    closeSync(this.#runsDescriptor);
  }

  #pathOf({ record }: JournalEntry): string {
    return join(this.#directory, `${this.#identity(record.requestId).slice("blake3:".length)}.json`);
  }

  /** Writes an entry durably under a name that nobody reads. */
  async #stage({ requestHash, record, audit }: JournalEntry): Promise<string> {
    const path = join(this.#directory, "staging", randomUUID());
    const file = await open(path, "wx", 0o600);
    try {
      await file.writeFile(stringifyJson({ version: 1, request_hash: requestHash, record, audit }));
      await file.sync();
    } finally {
      await file.close();
    }
    return path;
  }

  async #sync(): Promise<void> {
    const directory = await open(this.#directory, "r");
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  }
}

/** @throws {@link JournalError} when a directory that is there has something that no journal has */
async function holdsNothingElse(directory: string, isOurs: (name: string) => boolean): Promise<void> {
  const names = await readdir(directory).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === "ENOENT") return [];
    throw new JournalError(directory, `cannot be read (${cause.code})`, { cause });
  });
  const other = names.find((name) => !isOurs(name));
  if (other !== undefined) {
    throw new JournalError(directory, `has something else in it, ${JSON.stringify(other)}`);
  }
}

async function readEntry(path: string): Promise<JournalEntry> {
  try {
    const text = parseJson(await readFile(path)) as Record<string, unknown>;
    const requestHash = text["request_hash"];
    if (text["version"] !== 1 || typeof requestHash !== "string") throw new TypeError("another format");
    const [record, audit] = [recordSchema.parse(text["record"]), auditSchema.parse(text["audit"])];
    return { requestHash, record, audit };
  } catch (cause) {
    throw new JournalError(path, "is no entry of a journal", { cause });
  }
}
