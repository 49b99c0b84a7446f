// A real bucket in a directory of its own, with places to be overtaken or to lose an answer before a conditional write.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Bucket, type ConditionalWrite, openBucket } from "@cellkit/bucket";
import { onTestFinished } from "vitest";

/** A bucket whose conditional writes a test can reach into. */
export interface InterruptedBucket extends Bucket {
  /** The bucket below, which nothing interrupts: another deployer's. */
  readonly plain: Bucket;
  /** Keys that were written, in order. */
  readonly writes: string[];
  /** Runs before a conditional write is sent. */
  before: (key: string) => Promise<void>;
  /** Keys whose next conditional write loses its answer: it was carried out, comes late (when settled), or never. */
  readonly lost: Map<string, "carried out" | "late" | "never">;
}

/** Opens one; it is closed and removed at the end of the test. */
export async function interruptedBucket(): Promise<InterruptedBucket> {
  const directory = await mkdtemp(join(tmpdir(), "cellkit-deployment-bucket-"));
  const plain = openBucket(`file://${directory}`);
  onTestFinished(async () => {
    await plain.close();
    await rm(directory, { recursive: true, force: true });
  });

  async function conditional(key: string, write: () => Promise<ConditionalWrite>): Promise<ConditionalWrite> {
    await interrupted.before(key);
    const lost = interrupted.lost.get(key);
    interrupted.lost.delete(key);
    if (lost === undefined) {
      interrupted.writes.push(key);
      return write();
    }
    const rejected = { kind: "rejected" } as const;
    const early = lost === "carried out" ? await write() : rejected;
    async function settle() {
      const outcome = lost === "late" ? await write() : early;
      return outcome.kind === "ambiguous" ? outcome.settle() : outcome;
    }
    return { kind: "ambiguous", cause: new Error("connection reset"), settle };
  }

  const interrupted: InterruptedBucket = {
    plain,
    url: plain.url,
    writes: [],
    before: async () => {},
    lost: new Map(),
    get: plain.get.bind(plain),
    list: plain.list.bind(plain),
    delete: plain.delete.bind(plain),
    put(key, body, options) {
      interrupted.writes.push(key);
      return plain.put(key, body, options);
    },
    createIfAbsent: (key, body, options) => conditional(key, () => plain.createIfAbsent(key, body, options)),
    replaceIf: (key, body, etag, options) =>
      conditional(key, () => plain.replaceIf(key, body, etag, options)),
    close: () => plain.close(),
    [Symbol.asyncDispose]: () => plain.close(),
  };
  return interrupted;
}

/** The text of an object, or undefined. */
export async function textAt(bucket: Bucket, key: string): Promise<string | undefined> {
  const found = await bucket.get(key);
  return found === undefined ? undefined : new TextDecoder().decode(found.body);
}
