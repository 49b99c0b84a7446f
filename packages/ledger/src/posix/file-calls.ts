/**
 * The system calls of a ledger in a directory, as promises. On a local disk they are made at once: each takes some
 * microseconds there, and a turn through libuv's pool about fifty (measured: a look 11 us against 270 us). Elsewhere a
 * call may hang with the server, so it goes to the pool and never stops the event loop. fsync goes there always.
 */
import {
  type BigIntStats,
  close,
  closeSync,
  fstat,
  fstatSync,
  fsync,
  link,
  linkSync,
  lstat,
  lstatSync,
  type NoParamCallback,
  open,
  openSync,
  read,
  readSync,
  unlink,
  unlinkSync,
  write,
  writeSync,
} from "node:fs";
import { opendir } from "node:fs/promises";
import { promisify } from "node:util";
import { errnoOf } from "./disk-failure.ts";

/** What a ledger asks of the system. Every call rejects with Node's error, which carries the errno's name as its `code`. */
export interface FileCalls {
  /** Of the name itself, never of what a symbolic link points to; undefined if there is none. */
  lstat(path: string): Promise<BigIntStats | undefined>;
  open(path: string, flags: number, mode?: number): Promise<number>;
  fstat(fd: number): Promise<BigIntStats>;
  /** From the start of the file; answers how many bytes there were. */
  read(fd: number, into: Uint8Array): Promise<number>;
  write(fd: number, bytes: Uint8Array): Promise<number>;
  writeAt(fd: number, bytes: Uint8Array, position: number): Promise<number>;
  fsync(fd: number): Promise<void>;
  close(fd: number): Promise<void>;
  link(existing: string, name: string): Promise<void>;
  /** Links each pair and answers for each whether it failed, and how; at once where that can be, so that a lock is held briefly. */
  linkEach(pairs: readonly LinkPair[]): Promise<LinkOutcome[]>;
  unlink(path: string): Promise<void>;
  /** Shows every name in a directory, in no order, until `visit` answers false. Leaves room for others in between. */
  eachName(directory: string, visit: (name: string) => boolean): Promise<void>;
}

/** What {@link FileCalls.linkEach} links: a file, and its further name. */
type LinkPair = readonly [existing: string, name: string];

/** Undefined if it was linked. */
type LinkOutcome = { error: unknown } | undefined;

/** Entries that are read by one turn through the pool; more would hold the event loop for longer than 4 ms. */
const NAMES_AT_ONCE_COUNT = 1024;

async function eachName(directory: string, visit: (name: string) => boolean): Promise<void> {
  for await (const { name } of await opendir(directory, { bufferSize: NAMES_AT_ONCE_COUNT }))
    if (!visit(name)) return;
}

const fsyncInPool = promisify(fsync);

/** For file systems of this machine. */
export const immediateCalls: FileCalls = {
  lstat: async (path) => lstatSync(path, { bigint: true, throwIfNoEntry: false }),
  open: async (path, flags, mode) => openSync(path, flags, mode),
  fstat: async (fd) => fstatSync(fd, { bigint: true }),
  read: async (fd, into) => readSync(fd, into, 0, into.length, 0),
  write: async (fd, bytes) => writeSync(fd, bytes),
  writeAt: async (fd, bytes, position) => writeSync(fd, bytes, 0, bytes.length, position),
  fsync: fsyncInPool,
  close: async (fd) => closeSync(fd),
  link: async (existing, name) => linkSync(existing, name),
  linkEach: async (pairs) =>
    pairs.map(([existing, name]) => {
      try {
        linkSync(existing, name);
        return undefined;
      } catch (error) {
        return { error };
      }
    }),
  unlink: async (path) => unlinkSync(path),
  eachName,
};

/** Makes a promise of a call with a callback. */
function inPool<T>(start: (done: (error: Error | null, value: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    start((error, value) => (error === null ? resolve(value) : reject(error)));
  });
}

function inPoolWithoutValue(start: (done: NoParamCallback) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    start((error) => (error === null ? resolve() : reject(error)));
  });
}

/** For file systems of other machines. */
export const pooledCalls: FileCalls = {
  lstat: (path) =>
    inPool<BigIntStats>((done) => lstat(path, { bigint: true }, done)).catch((error: unknown) => {
      if (errnoOf(error) === "ENOENT") return undefined;
      throw error;
    }),
  open: (path, flags, mode) => inPool((done) => open(path, flags, mode, done)),
  fstat: (fd) => inPool((done) => fstat(fd, { bigint: true }, done)),
  read: (fd, into) => inPool((done) => read(fd, into, 0, into.length, 0, done)),
  write: (fd, bytes) => inPool((done) => write(fd, bytes, done)),
  writeAt: (fd, bytes, position) => inPool((done) => write(fd, bytes, 0, bytes.length, position, done)),
  fsync: fsyncInPool,
  close: (fd) => inPoolWithoutValue((done) => close(fd, done)),
  link: (existing, name) => inPoolWithoutValue((done) => link(existing, name, done)),
  linkEach: (pairs) =>
    Promise.all(
      pairs.map(([existing, name]) =>
        inPoolWithoutValue((done) => link(existing, name, done)).then(
          () => undefined,
          (error: unknown) => ({ error }),
        ),
      ),
    ),
  unlink: (path) => inPoolWithoutValue((done) => unlink(path, done)),
  eachName,
};
