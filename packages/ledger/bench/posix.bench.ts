// What claims cost in a directory: near the capacity, beside the original's algorithm, and beside the disk itself.
import {
  closeSync,
  fsync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { formatRecord } from "../src/core/record.ts";
import { loadDigest } from "../src/digest.ts";
import type { StoredLedger } from "../src/ledger.ts";
import { openPosixLedger } from "../src/posix/open-posix-ledger.ts";
import { ReferenceLedger } from "../test/support/reference-ledger.ts";
import { measureRate } from "./support/storm.ts";

const WAITING_COUNT = 64;
const CLAIMS_A_ROUND = 256;
const BACKEND = "http://10.20.0.11:8787";
const OWNER = { backend: BACKEND, bodyHash: `blake3:${"0".repeat(64)}` };
const BODY = "x".repeat(512);
/** Names that one file may have on ext4 is 65,000. */
const NAMES_A_FILE = 50_000;

const sync = promisify(fsync);
const directories: string[] = [];

function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "cellkit-bench-"));
  directories.push(directory);
  return directory;
}

function removeDirectories(): void {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
}

/** Many records, quickly: all are names of a few files, which a directory cannot tell from files of their own. */
async function fill(directory: string, count: number): Promise<void> {
  let file = "";
  for (let index = 0; index < count; index += 1) {
    const path = join(directory, `${index.toString(16).padStart(64, "0")}.json`);
    if (index % NAMES_A_FILE > 0) linkSync(file, path);
    else {
      file = path;
      writeFileSync(path, formatRecord(OWNER), { mode: 0o600 });
    }
  }
  const fd = openSync(directory, "r");
  await sync(fd);
  closeSync(fd);
}

async function openWith(recordCount: number): Promise<StoredLedger> {
  const directory = temporaryDirectory();
  await fill(directory, recordCount);
  return openPosixLedger({ directory });
}

let idCount = 0;

async function claimNew(ledger: StoredLedger): Promise<void> {
  idCount += 1;
  const { kind } = await ledger.claim(`run-${idCount}`, BODY, async () => BACKEND);
  if (kind !== "new") throw new TypeError(`claim ${idCount} is ${kind}`);
}

const claims = (ledger: StoredLedger) => measureRate(WAITING_COUNT, CLAIMS_A_ROUND, () => claimNew(ledger));

function writeOne(path: string): number {
  const fd = openSync(path, "wx", 0o600);
  writeSync(fd, formatRecord(OWNER));
  return fd;
}

/** The writes and fsyncs of claims with nothing around them: 64 files aside, their names, one fsync of the directory. */
class Floor {
  readonly directory = temporaryDirectory();
  readonly #fd = openSync(this.directory, "r");
  #count = 0;

  constructor() {
    mkdirSync(join(this.directory, "aside"));
  }

  async writeGroup(): Promise<void> {
    this.#count += WAITING_COUNT;
    const group = Array.from({ length: WAITING_COUNT }, (_, index) => String(this.#count + index));
    const fds = group.map((name) => writeOne(join(this.directory, "aside", name)));
    await Promise.all(fds.map((fd) => sync(fd)));
    for (const fd of fds) closeSync(fd);
    for (const name of group)
      linkSync(join(this.directory, "aside", name), join(this.directory, `${name}.json`));
    await sync(this.#fd);
    for (const name of group) unlinkSync(join(this.directory, "aside", name));
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** The 99th percentile of `look` in ms, from when it was due (every 2 ms) to its end, while a storm goes on. */
async function measureLooks(storm: () => Promise<unknown>, look: () => Promise<unknown>): Promise<number> {
  let storming = true;
  const ended = storm().finally(() => {
    storming = false;
  });
  const tookMs: number[] = [];
  for (let dueMs = performance.now() + 2; storming; dueMs += 2) {
    const waitMs = dueMs - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    await look();
    tookMs.push(performance.now() - dueMs);
  }
  await ended;
  tookMs.sort((a, b) => a - b);
  return tookMs[Math.floor(tookMs.length * 0.99)] ?? Number.NaN;
}

const DISK = "one process, on the temporary directory's disk, wall-clock, since the disk is what is measured";

export const benchmarks = [
  {
    name: "ledger/posix-flatness",
    subject: "claims of new ids at 95,000 records, capacity 100,000",
    against: "the same with an empty ledger",
    unit: "claims/s",
    roundCount: 11,
    conditions: `${WAITING_COUNT} waiting, ${CLAIMS_A_ROUND} claims a round, background countings included; ${DISK}`,
    async setup() {
      const full = await openWith(95_000);
      const empty = await openWith(0);
      return {
        subject: () => claims(full),
        against: () => claims(empty),
        close: async () => {
          await full.close();
          await empty.close();
          removeDirectories();
        },
      };
    },
  },
  {
    name: "ledger/posix-vs-reference",
    subject: "claims of new ids at 50,000 records",
    against: "the original's algorithm at as many, one after the other, so that none is refused",
    unit: "claims/s",
    roundCount: 7,
    conditions: `${WAITING_COUNT} waiting and ${CLAIMS_A_ROUND} claims a round, against 10 claims; ${DISK}`,
    async setup() {
      const ledger = await openWith(50_000);
      const directory = temporaryDirectory();
      await fill(directory, 50_000);
      const reference = new ReferenceLedger(directory, 100_000, await loadDigest());
      return {
        subject: () => claims(ledger),
        against: () =>
          measureRate(1, 10, async () => {
            idCount += 1;
            reference.claim(`run-${idCount}`, BODY, () => BACKEND);
          }),
        close: async () => {
          await ledger.close();
          removeDirectories();
        },
      };
    },
  },
  {
    name: "ledger/posix-vs-floor",
    subject: "claims of new ids",
    against:
      "the same writes and fsyncs with no ledger: 64 files aside in parallel, 64 links, one fsync of the directory",
    unit: "claims/s",
    roundCount: 15,
    conditions: `${WAITING_COUNT} waiting, ${CLAIMS_A_ROUND} claims a round; ${DISK}`,
    async setup() {
      const ledger = await openWith(0);
      const floor = new Floor();
      return {
        subject: () => claims(ledger),
        against: async () =>
          WAITING_COUNT * (await measureRate(1, CLAIMS_A_ROUND / WAITING_COUNT, () => floor.writeGroup())),
        close: async () => {
          await ledger.close();
          floor.close();
          removeDirectories();
        },
      };
    },
  },
  {
    name: "ledger/posix-lookup-p99",
    subject: "a lookup while 64 claim new ids, at 50,000 records, 99th percentile",
    against: "reading such a file while 64 are written and fsynced with no ledger",
    unit: "ms",
    roundCount: 5,
    conditions: `1,024 claims a round, a lookup each 2 ms, from when it was due to its answer; ${DISK}`,
    async setup() {
      const ledger = await openWith(50_000);
      await ledger.claim("known", BODY, async () => BACKEND);
      const floor = new Floor();
      const file = join(floor.directory, "known");
      writeFileSync(file, formatRecord(OWNER));
      return {
        subject: () =>
          measureLooks(
            () => measureRate(WAITING_COUNT, 4 * CLAIMS_A_ROUND, () => claimNew(ledger)),
            () => ledger.lookup("known"),
          ),
        against: () =>
          measureLooks(
            () => measureRate(1, (4 * CLAIMS_A_ROUND) / WAITING_COUNT, () => floor.writeGroup()),
            async () => readFileSync(file),
          ),
        close: async () => {
          await ledger.close();
          floor.close();
          removeDirectories();
        },
      };
    },
  },
];
