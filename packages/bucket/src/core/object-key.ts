/**
 * Which file holds which key. A key is any well-formed UTF-8 of 1 to 1,024 bytes; a file name has at most 255 bytes, may
 * not contain "/" and on some systems ignores case. The map is injective and reversible, cannot climb out of its root,
 * and keeps neighbours together, so that a listing reads only the directories it needs.
 *
 * A key is cut at each "/". A piece of fewer than {@link PIECE_BYTES} bytes is one name; a longer one becomes a chain of
 * directories. Bytes outside `a-z 0-9 . _ -` are written as `%xx`, upper-case letters too. The last character of a name
 * says what it is: `=` an object, `+` what follows after a "/", `~` the continuation of a long piece. No name is thus
 * ever `.` or `..`, and object `a` can stand next to object `a/b`.
 *
 * Keys are handled as *byte strings*: one character per byte (latin1), because comparing those gives the order of UTF-8
 * bytes, in which S3 lists keys.
 */
import { BucketKeyError } from "../errors.ts";

/** S3's limit of a key. */
const KEY_LIMIT_BYTES = 1024;
/** Bytes of a piece in one name: 80 bytes of `%xx` and one character of kind stay under 255. */
export const PIECE_BYTES = 80;

/** What one name in a directory of objects stands for; `bytes` is a byte string. */
export type Entry = { kind: "object" | "folder" | "continuation"; bytes: string };

const SUFFIX = { object: "=", folder: "+", continuation: "~" } as const;
const KIND = { "=": "object", "+": "folder", "~": "continuation" } as const;

/**
 * Checks a key and answers its byte string.
 * @throws BucketKeyError (CELLKIT_BUCKET_KEY) when it is empty, too long, has an unpaired surrogate, or when its `..`
 *   segments climb above the bucket (as Amazon S3 refuses it); `a/../b` is a key like any other.
 */
export function keyBytes(key: string): string {
  if (key === "") throw new BucketKeyError(key, "is empty; a key has 1 to 1,024 bytes");
  if (!key.isWellFormed()) throw new BucketKeyError(key, "is not well-formed Unicode");
  const bytes = toBytes(key);
  if (bytes.length > KEY_LIMIT_BYTES) {
    throw new BucketKeyError(key, `has ${bytes.length} bytes of UTF-8; at most 1,024 are accepted`);
  }
  let depth = 0;
  for (const segment of key.split("/")) {
    depth += segment === ".." ? -1 : segment === "." || segment === "" ? 0 : 1;
    if (depth < 0) throw new BucketKeyError(key, "climbs out of the bucket");
  }
  return bytes;
}

/** The byte string of a text: one character per byte of its UTF-8. */
export function toBytes(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

/** The text of a byte string, or undefined when it is no well-formed UTF-8. */
export function fromBytes(bytes: string): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(bytes, "latin1"));
  } catch {
    return undefined;
  }
}

/** The names below the root of objects that lead to a key's file; the last one is the file. */
export function pathOfKey(bytes: string): string[] {
  const names: string[] = [];
  const segments = bytes.split("/");
  for (const [index, segment] of segments.entries()) {
    let rest = segment;
    while (rest.length >= PIECE_BYTES) {
      names.push(encodeName({ kind: "continuation", bytes: rest.slice(0, PIECE_BYTES) }));
      rest = rest.slice(PIECE_BYTES);
    }
    names.push(encodeName({ kind: index === segments.length - 1 ? "object" : "folder", bytes: rest }));
  }
  return names;
}

/** The key of a file, given the names that lead to it, or undefined when they are not ours. */
export function keyOfPath(names: readonly string[]): string | undefined {
  let key = "";
  for (const [index, name] of names.entries()) {
    const entry = decodeName(name);
    if (entry === undefined) return undefined;
    if ((entry.kind === "object") !== (index === names.length - 1)) return undefined;
    key += entry.bytes + (entry.kind === "folder" ? "/" : "");
  }
  return fromBytes(key);
}

/** The file name of an entry. */
export function encodeName(entry: Entry): string {
  const text = entry.bytes.replace(
    /[^a-z0-9._-]/g,
    (byte) => `%${byte.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
  return text + SUFFIX[entry.kind];
}

/** What a file name stands for, or undefined when this module would not have written it so. */
export function decodeName(name: string): Entry | undefined {
  const kind = KIND[name.slice(-1) as keyof typeof KIND];
  if (kind === undefined) return undefined;
  const bytes = name
    .slice(0, -1)
    .replace(/%([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  const entry: Entry = { kind, bytes };
  if (encodeName(entry) !== name || bytes.includes("/")) return undefined;
  return (kind === "continuation") === (bytes.length === PIECE_BYTES) && bytes.length <= PIECE_BYTES
    ? entry
    : undefined;
}

/** What all keys below an entry begin with, given what those of its directory begin with. */
export function prefixOfEntry(directoryPrefix: string, entry: Entry): string {
  return directoryPrefix + entry.bytes + (entry.kind === "folder" ? "/" : "");
}
