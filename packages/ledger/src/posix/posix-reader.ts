/**
 * A ledger in a directory, for whoever only looks: nothing is made, written or locked, so that it works on a copy, on a
 * read-only mount, for another user, and where only routers of the original have been.
 */
import { realpath } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { checkKey, DEFAULT_LEDGER_NAME, resolveLedgerOptions } from "../core/ledger-options.ts";
import { LedgerClosedError, LedgerMissingError, LedgerOptionError } from "../errors.ts";
import type { LedgerCallOptions, LedgerEntry, LedgerReader } from "../ledger.ts";
import { diskFailure, errnoOf, quietly } from "./disk-failure.ts";
import { pooledCalls } from "./file-calls.ts";
import { LedgerDirectory, MARKER_NAME } from "./ledger-directory.ts";
import { findEntry, holdsRecord, listEntries } from "./listing.ts";
import { readMarker } from "./marker.ts";
import { RecordFiles } from "./record-files.ts";

/**
 * Opens the ledger of a directory for reading. One without a mark of its creation counts as a ledger if a record lies in it.
 * @throws LedgerMissingError (CELLKIT_LEDGER_MISSING) where neither a mark nor a record is, LedgerOptionError, LedgerUnavailableError,
 *   LedgerUnsupportedError for a mark that this version does not know
 */
export async function openPosixReader(options: {
  directory: string;
  name?: string | undefined;
}): Promise<LedgerReader> {
  const { name } = resolveLedgerOptions({ name: options.name }, { capacity: undefined, now: Date.now });
  if (typeof options.directory !== "string" || options.directory === "" || options.directory.includes("\0"))
    throw new LedgerOptionError("a ledger's directory is a path, neither empty nor with NUL bytes");
  const top = resolve(options.directory);
  const wanted = name === DEFAULT_LEDGER_NAME ? top : join(top, name);
  const url = pathToFileURL(wanted).href;
  let directory: LedgerDirectory;
  try {
    directory = await LedgerDirectory.open(await realpath(wanted), pooledCalls);
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === "ENOENT") throw new LedgerMissingError(wanted, "there is no such directory");
    if (errno === "ENOTDIR") throw new LedgerMissingError(wanted, "it is no directory");
    throw diskFailure(url, "open its directory", error, "no");
  }
  try {
    const ledgerId = await readMarker(directory);
    if (ledgerId === undefined && !(await holdsRecord(directory.path, directory.calls)))
      throw new LedgerMissingError(wanted, `it has neither a file ${MARKER_NAME} nor a record`);
    if (ledgerId !== undefined) directory.expectLedger(ledgerId);
    return new PosixReader(directory, name, ledgerId);
  } catch (error) {
    await quietly(directory.close());
    throw diskFailure(url, "look into its directory", error, "no");
  }
}

class PosixReader implements LedgerReader {
  readonly url: string;
  readonly name: string;
  readonly ledgerId: string | undefined;
  readonly #directory: LedgerDirectory;
  readonly #files: RecordFiles;
  readonly #calls = new Set<Promise<unknown>>();
  #closed: Promise<void> | undefined;

  constructor(directory: LedgerDirectory, name: string, ledgerId: string | undefined) {
    this.url = directory.url;
    this.name = name;
    this.ledgerId = ledgerId;
    this.#directory = directory;
    this.#files = new RecordFiles(directory, () => undefined);
  }

  async *entries({ signal }: LedgerCallOptions = {}): AsyncGenerator<LedgerEntry> {
    this.#begin(signal);
    for await (const entry of listEntries(this.#directory, this.#files, signal)) {
      yield entry;
      this.#begin(signal);
    }
  }

  async entry(key: string, { signal }: LedgerCallOptions = {}): Promise<LedgerEntry | undefined> {
    this.#begin(signal);
    checkKey(key);
    const running = findEntry(this.#directory, this.#files, key);
    this.#calls.add(running);
    try {
      return await running;
    } finally {
      this.#calls.delete(running);
    }
  }

  close(): Promise<void> {
    this.#closed ??= Promise.allSettled(this.#calls).then(() => quietly(this.#directory.close()));
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #begin(signal: AbortSignal | undefined): void {
    if (this.#closed !== undefined) throw new LedgerClosedError(this.url);
    signal?.throwIfAborted();
  }
}
