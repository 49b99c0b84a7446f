// How much of the disk's own speed is left to 16 writers after conditions, locks, hashes and footers.
import { mkdir, mkdtemp, open, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ObjectStore } from "../src/store/object-store.ts";

const WRITER_COUNT = 16;
const WRITES_EACH = 12;
const BODY = Buffer.alloc(1024, "x");

/** Runs 16 writers side by side and answers writes per second. */
async function measureWriters(write: (name: string) => Promise<void>, round: number): Promise<number> {
  const startedMs = performance.now();
  await Promise.all(
    Array.from({ length: WRITER_COUNT }, async (_, writer) => {
      for (let index = 0; index < WRITES_EACH; index += 1) await write(`${round}-${writer}-${index}.json`);
    }),
  );
  return (WRITER_COUNT * WRITES_EACH * 1000) / (performance.now() - startedMs);
}

/** What a careful program does without a store: write aside, fsync, rename, fsync of the directory. */
async function writeRaw(directory: string, name: string): Promise<void> {
  const aside = join(directory, "aside", name);
  const file = await open(aside, "wx");
  await file.writeFile(BODY);
  await file.sync();
  await file.close();
  await rename(aside, join(directory, "objects", name));
  const folder = await open(join(directory, "objects"), "r");
  await folder.sync();
  await folder.close();
}

/** What the server does with a PUT `If-None-Match: *` between authentication and answer. */
async function writeConditionally(store: ObjectStore, name: string): Promise<void> {
  const condition = { kind: "absent" } as const;
  const key = `bench/${name}`;
  await store.precheck(key, condition);
  const staged = store.stage();
  await staged.write(BODY);
  staged.finish({ "content-type": "application/json" });
  const { kind } = await store.put(key, staged, condition);
  if (kind !== "applied") throw new TypeError(`the key ${key} was taken: ${kind}`);
}

export const benchmarks = [
  {
    name: "bucket/conditional-put",
    subject: "the embedded server's storage path of a conditional PUT",
    against: "open, write, fsync, close, rename, open, fsync, close of the directory",
    unit: "writes/s",
    roundCount: 15,
    conditions:
      `${WRITER_COUNT} writers in one process, ${WRITES_EACH} new objects of 1 KiB each a round, one folder, both on the temporary ` +
      "directory's disk; ours includes key to path, check before and under the lock, flock, MD5, footer and shared " +
      "directory fsync, not HTTP and signatures; wall-clock, since the disk is what is measured",
    async setup() {
      const directory = await mkdtemp(join(tmpdir(), "cellkit-bench-"));
      await mkdir(join(directory, "raw", "aside"), { recursive: true });
      await mkdir(join(directory, "raw", "objects"));
      const store = await ObjectStore.open(join(directory, "bucket"));
      let round = 0;
      return {
        subject: () => {
          round += 1;
          return measureWriters((name) => writeConditionally(store, name), round);
        },
        against: () => {
          round += 1;
          return measureWriters((name) => writeRaw(join(directory, "raw"), name), round);
        },
        close: async () => {
          await store.close();
          await rm(directory, { recursive: true });
        },
      };
    },
  },
];
