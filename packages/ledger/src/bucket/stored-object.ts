/**
 * What lies at the key of a record in a bucket: a record, or the stone over one that was retired.
 *
 * A record is the bytes of a file of a POSIX ledger, then 64 characters of white space that carry 128 random bits: the claim's mark.
 * Readers of records skip white space, so nobody need know of it. It is there because two claims of one id with one body may choose one
 * owner, and then their records are the same bytes. When the answer to a create-if-absent is lost, reading back would show each of them
 * its own bytes, and both would be told `new`. With the mark no two claims write the same bytes, so bytes that are ours were written by
 * this very call, and by nobody else. It also makes every record's ETag its own (an ETag tells contents apart, not writes), so that a
 * condition on it can never be met by a later record of the same owner and body.
 *
 * A retired id keeps an object, the stone. See `retirement.ts` for the reason. It has a length that no record has, so that a listing
 * tells it from a record.
 */
import { randomBytes } from "node:crypto";
import { formatRecord, parseRecord } from "../core/record.ts";
import type { Owner } from "../ledger.ts";

/** Two bits each. */
const MARK_CHARACTERS = [" ", "\t", "\n", "\r"] as const;
const MARK_BYTES = 16;
const STONE = /^retired [0-9a-f]{32}$/;

/** The length of a stone. A record is longer: its members' names alone take more. */
export const STONE_BYTES = "retired ".length + 32;

/** What the bytes at a record's key are. */
export type StoredObject =
  | { kind: "record"; owner: Owner }
  | { kind: "retired" }
  | { kind: "corrupt"; problem: string };

/** Reads what lies at the key of a record. @param bytes the whole of it, or its first 4,097 bytes */
export function parseStoredObject(bytes: Uint8Array): StoredObject {
  if (bytes.length === STONE_BYTES && STONE.test(Buffer.from(bytes).toString("latin1")))
    return { kind: "retired" };
  const read = parseRecord(bytes);
  return "owner" in read ? { kind: "record", owner: read.owner } : { kind: "corrupt", problem: read.problem };
}

/** The bytes of a record that no other call ever writes. */
export function makeRecord(owner: Owner): Uint8Array {
  let mark = "";
  for (const byte of randomBytes(MARK_BYTES))
    for (let shift = 0; shift < 8; shift += 2) mark += MARK_CHARACTERS[(byte >> shift) & 3];
  return Buffer.from(formatRecord(owner) + mark, "utf8");
}

/** The bytes of a stone that no other call ever writes. */
export function makeStone(): Uint8Array {
  return Buffer.from(`retired ${randomBytes(16).toString("hex")}`, "latin1");
}
