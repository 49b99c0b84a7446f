/** Reads the keys of a directory of objects in the order of their bytes, reading only the folders it must. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { decodeName, type Entry, prefixOfEntry } from "../core/object-key.ts";
import { errnoOf } from "./disk-failure.ts";

/** Where a walk stands; the consumer may move `from` forward between two keys to skip what lies before it. */
export interface Cursor {
  /** Only keys that begin with this (byte string). */
  readonly prefix: string;
  /** Only keys that are not below this (byte string). */
  from: string;
  /** Told of folders that hold nothing. */
  onEmpty(folder: string): void;
}

/** One object found. */
export interface Found {
  /** Byte string. */
  key: string;
  path: string;
}

/** The first byte string above all keys that begin with `prefix`: no UTF-8 contains the byte 0xFF. */
export function endOfPrefix(prefix: string): string {
  return `${prefix}\u00ff`;
}

/** Walks one directory whose keys all begin with `directoryPrefix`. An absent directory holds nothing. */
export async function* walk(
  directory: string,
  directoryPrefix: string,
  cursor: Cursor,
): AsyncGenerator<Found> {
  for (const { name, entry, prefix } of await readEntries(directory, directoryPrefix, cursor)) {
    if (entry.kind === "object") {
      if (prefix >= cursor.from && prefix.startsWith(cursor.prefix)) {
        yield { key: prefix, path: join(directory, name) };
      }
      continue;
    }
    const inPrefix = prefix.startsWith(cursor.prefix) || cursor.prefix.startsWith(prefix);
    if (inPrefix && endOfPrefix(prefix) > cursor.from) yield* walk(join(directory, name), prefix, cursor);
  }
}

interface Child {
  name: string;
  entry: Entry;
  /** The key of an object; what all keys begin with below a folder or a continuation. */
  prefix: string;
}

async function readEntries(directory: string, directoryPrefix: string, cursor: Cursor): Promise<Child[]> {
  let names: string[];
  try {
    names = await readdir(directory);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return [];
    throw error;
  }
  if (names.length === 0) cursor.onEmpty(directory);
  const children: Child[] = [];
  for (const name of names) {
    const entry = decodeName(name);
    if (entry !== undefined) children.push({ name, entry, prefix: prefixOfEntry(directoryPrefix, entry) });
  }
  return children.sort((a, b) => (a.prefix < b.prefix ? -1 : a.prefix > b.prefix ? 1 : 0));
}
