import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, inject, it } from "vitest";
import { type Bucket, openBucket } from "../src/index.ts";
import { text } from "./support/bucket-conformance.ts";
import { startChild } from "./support/child.ts";
import { clientOptions, credentials } from "./support/server.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

const KILL_COUNT = inject("size") === "long" ? 200 : 10;
/** Generous, since processes are started while other work may hold the processors. */
const TIME_LIMIT_MS = inject("size") === "long" ? 1_800_000 : 180_000;
const WRITER_COUNT = 8;
/** Writes that must be acknowledged before the kill, so that each run kills within writing. */
const BEFORE_KILL_COUNT = 12;

/** A body that can be told from its key, of 1 byte to 300 kB. */
function bodyOf(key: string): Buffer {
  const size = 1 + (createHash("sha256").update(key).digest().readUInt32BE(0) % 300_000);
  return Buffer.alloc(size, key);
}

/** Adds one to a counter by conditional writes until the store is gone; answers what is known of its value. */
async function count(
  bucket: Bucket,
  key: string,
  known: { acknowledged: number; possible: number },
): Promise<void> {
  for (;;) {
    const object = await bucket.get(key);
    const value = Number(text(object) ?? "0");
    const next = String(value + 1);
    const write = await (object === undefined
      ? bucket.createIfAbsent(key, next)
      : bucket.replaceIf(key, next, object.etag));
    if (write.kind === "ambiguous") {
      known.possible = value + 1;
      return;
    }
    expect(write.kind).toBe("applied");
    known.acknowledged = value + 1;
    known.possible = value + 1;
  }
}

it(
  `loses no acknowledged object and leaves none in part, over ${KILL_COUNT} kills within writes`,
  async () => {
    const directory = join(await temporaryDirectory(), "bucket");
    const acknowledged = new Set<string>();
    const known = { acknowledged: 0, possible: 0 };
    for (let run = 0; run < KILL_COUNT; run += 1) {
      const server = startChild("server-process.ts", [
        directory,
        credentials.accessKeyId,
        credentials.secretAccessKey,
      ]);
      const endpoint = String(await server.next());
      // What the killed one staged was removed by this one's start.
      expect(await readdir(join(directory, "staging"))).toHaveLength(2);
      const bucket = openBucket("s3://cells", clientOptions({ endpoint }, { readAttemptCount: 1 }));
      let writes = 0;
      const enough = Promise.withResolvers<void>();
      const write = async (writer: number) => {
        for (let index = 0; ; index += 1) {
          const key = `run${run}/w${writer}/${index}`;
          if ((await bucket.createIfAbsent(key, bodyOf(key))).kind !== "applied") return;
          acknowledged.add(key);
          writes += 1;
          if (writes >= BEFORE_KILL_COUNT) enough.resolve();
        }
      };
      const writers = [
        ...Array.from({ length: WRITER_COUNT }, (_, writer) => write(writer)),
        count(bucket, "counter", known),
      ].map((work) =>
        work.catch((error: unknown) => expect(error).toMatchObject({ code: "CELLKIT_BUCKET_UNREACHABLE" })),
      );
      await enough.promise;
      await server.kill();
      await Promise.all(writers);
      await bucket.close();

      const after = openBucket(pathToFileURL(directory).href);
      const listed = new Set<string>();
      for await (const { key } of after.list(`run${run}/`)) {
        const object = await after.get(key);
        expect(Buffer.compare(object?.body ?? new Uint8Array(), bodyOf(key))).toBe(0);
        listed.add(key);
      }
      for (const key of acknowledged) if (key.startsWith(`run${run}/`)) expect(listed).toContain(key);
      const value = Number(text(await after.get("counter")) ?? "0");
      expect([known.acknowledged, known.possible]).toContain(value);
      known.acknowledged = value;
      await after.close();
    }
    const all = openBucket(pathToFileURL(directory).href);
    for (const key of acknowledged) expect((await all.get(key))?.sizeBytes).toBe(bodyOf(key).length);
    await all.close();
    expect(acknowledged.size).toBeGreaterThanOrEqual(KILL_COUNT * BEFORE_KILL_COUNT);
  },
  TIME_LIMIT_MS,
);
