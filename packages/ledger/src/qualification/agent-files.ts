/** What an agent does with files of its probe: each step as a ledger in a directory does it. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import type { AgentAnswer } from "./agent-protocol.ts";

/** As long as the longest record. */
const CONTENT_BYTES = 4_096;

/** How long a watcher waits for the next thing to appear. */
const WATCH_MS = 10_000;

/** Between two turns, others get theirs: the agent has an event loop to serve. */
const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const isErrno = (error: unknown, code: string): boolean => (error as NodeJS.ErrnoException).code === code;

/** The content for a number: as many letters, all the same, so that a torn one shows. */
const contentOf = (number: number): string => String.fromCharCode(97 + (number % 26)).repeat(CONTENT_BYTES);

const isWhole = (text: string): boolean =>
  text.length === CONTENT_BYTES && text === (text[0] ?? "").repeat(CONTENT_BYTES);

/** Undefined for one that is not there. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (isErrno(error, "ENOENT")) return undefined;
    throw error;
  }
}

/** Files in one directory, by their names. */
export class AgentFiles {
  readonly #directory: string;
  /** Makes the names of staging files different from those of all other agents. */
  readonly #self: string;

  constructor(directory: string, self: string) {
    this.#directory = directory;
    this.#self = self;
  }

  /** Tries to be the first with each of many names, once all parties are there. */
  async race(
    prefix: string,
    count: number,
    how: "exclusive" | "link",
    partyCount: number,
  ): Promise<AgentAnswer<"race">> {
    const won: number[] = [];
    const staging = this.#path(`staging-${this.#self}`);
    writeFileSync(staging, this.#self);
    writeFileSync(this.#path(`ready-${prefix}-${this.#self}`), "");
    const isReady = (name: string): boolean => name.startsWith(`ready-${prefix}-`);
    const deadlineMs = performance.now() + WATCH_MS;
    while (readdirSync(this.#directory).filter(isReady).length < partyCount && performance.now() < deadlineMs)
      await breathe();
    for (let at = 0; at < count; at++) {
      try {
        if (how === "link") linkSync(staging, this.#path(`${prefix}-${at}`));
        else writeFileSync(this.#path(`${prefix}-${at}`), this.#self, { flag: "wx" });
        won.push(at);
      } catch (error) {
        if (!isErrno(error, "EEXIST")) throw error;
      }
      await breathe();
    }
    unlinkSync(staging);
    return { won };
  }

  put(name: string, text: string): void {
    writeFileSync(this.#path(name), text);
  }

  get(name: string): AgentAnswer<"get"> {
    return { text: read(this.#path(name)) ?? null };
  }

  /** A file as others may have cached it: its times and size, those of the directory, and whether it is listed. */
  look(name: string): AgentAnswer<"look"> {
    const path = this.#path(name);
    const found = existsSync(path) ? statSync(path, { bigint: true }) : undefined;
    return {
      mtimeNs: found === undefined ? null : String(found.mtimeNs),
      sizeBytes: Number(found?.size ?? 0),
      directoryMtimeNs: String(statSync(this.#directory, { bigint: true }).mtimeNs),
      listed: readdirSync(this.#directory).includes(name),
    };
  }

  /** Publishes whole contents: over one name again and again (rename), or each under a name of its own (link). */
  async publish(prefix: string, count: number, how: "rename" | "link"): Promise<void> {
    for (let at = 0; at < count; at++) {
      const staging = this.#path(`staging-${this.#self}`);
      writeFileSync(staging, contentOf(at));
      if (how === "rename") renameSync(staging, this.#path(prefix));
      else {
        linkSync(staging, this.#path(`${prefix}-${at}`));
        unlinkSync(staging);
      }
      await breathe();
    }
    if (how === "rename") writeFileSync(this.#path(`${prefix}-end`), "");
  }

  /** Reads without a pause what another agent publishes, from the first to the last; what is not whole is counted. */
  async watch(prefix: string, count: number, how: "rename" | "link"): Promise<AgentAnswer<"watch">> {
    const seen = { readCount: 0, missingCount: 0, tornCount: 0 };
    const deadlineMs = performance.now() + WATCH_MS;
    const end = this.#path(`${prefix}-end`);
    for (let at = 0; how === "rename" ? !existsSync(end) : at < count; ) {
      if (performance.now() > deadlineMs) break;
      const text = read(this.#path(how === "rename" ? prefix : `${prefix}-${at}`));
      seen.readCount += 1;
      if (text === undefined) {
        // Before its first version nothing is missing; between two of them everything is.
        if (how === "rename" && at > 0) seen.missingCount += 1;
      } else {
        if (!isWhole(text)) seen.tornCount += 1;
        at += 1;
      }
      await breathe();
    }
    return seen;
  }

  /** fsync of a file and of the directory, and of all directories above it, as a ledger does it when it is opened. */
  sync(): AgentAnswer<"sync"> {
    const path = this.#path(`sync-${this.#self}`);
    const began = performance.now();
    const fd = openSync(path, "wx");
    let problem: string | undefined;
    try {
      writeSync(fd, contentOf(0));
      fsyncSync(fd);
    } catch (error) {
      problem = `fsync of a file: ${(error as Error).message}`;
    } finally {
      closeSync(fd);
    }
    const between = performance.now();
    problem ??= syncDirectory(this.#directory);
    const directoryMs = performance.now() - between;
    for (let at = dirname(this.#directory); problem === undefined; at = dirname(at)) {
      problem = syncDirectory(at);
      if (at === dirname(at)) break;
    }
    return {
      fileMs: between - began,
      directoryMs,
      ...(problem === undefined ? {} : { problem }),
    };
  }

  /** The times that many files get which are made one after the other, and how far they are from this machine's clock. */
  async times(prefix: string, count: number): Promise<AgentAnswer<"times">> {
    const mtimesNs: string[] = [];
    let skewMs = 0;
    for (let at = 0; at < count; at++) {
      const path = this.#path(`${prefix}-${at}`);
      const beforeMs = Date.now();
      writeFileSync(path, "");
      const { mtimeNs, mtimeMs } = statSync(path, { bigint: true });
      mtimesNs.push(String(mtimeNs));
      const off = Number(mtimeMs) - beforeMs;
      if (Math.abs(off) > Math.abs(skewMs)) skewMs = off;
      await breathe();
    }
    return { mtimesNs, skewMs };
  }

  #path(name: string): string {
    return `${this.#directory}/${name}`;
  }
}

/** What stands in the way of an fsync of a directory; undefined for nothing. */
function syncDirectory(path: string): string | undefined {
  try {
    const fd = openSync(path, "r");
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    return undefined;
  } catch (error) {
    return `fsync of the directory ${path}: ${(error as Error).message}`;
  }
}
