import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Bucket, openBucket } from "@cellkit/bucket";
import { afterEach, beforeEach, expect, it } from "vitest";
import { claimStorage, clusterKey } from "../src/storage-records.ts";

let directory: string;
let bucket: Bucket;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "engine-storage-"));
  bucket = openBucket(pathToFileURL(directory).href);
});
afterEach(async () => {
  await bucket.close();
  await rm(directory, { recursive: true, force: true });
});

/** The same bucket, in which another node does something right before the first listing. */
function meanwhile(act: () => Promise<unknown>): Bucket {
  let done: Promise<unknown> | undefined;
  return new Proxy(bucket, {
    get(target, name) {
      if (name !== "list") return Reflect.get(target, name).bind?.(target) ?? Reflect.get(target, name);
      return async function* (prefix: string) {
        done ??= act();
        await done;
        yield* target.list(prefix);
      };
    },
  });
}

it("an empty prefix is claimed, and is this engine's from then on", async () => {
  await claimStorage(bucket);
  await bucket.put("nodes/one.json", "{}");
  await claimStorage(bucket);
  expect(JSON.parse(String(Buffer.from((await bucket.get("cellkit/format.json"))?.body ?? [])))).toEqual({
    engine: "workerd-cluster",
    format: 1,
  });
});

it("a prefix on which an original celld has nodes or cells is refused, and nothing is written", async () => {
  for (const key of ["nodes/other.json", "cells/a/b"]) {
    await bucket.put(key, "{}");
    await expect(claimStorage(bucket)).rejects.toMatchObject({
      code: "CELLKIT_ENGINE_STORAGE",
      message: expect.stringContaining(`${key.split("/")[0]}/… of an original celld`),
    });
    await bucket.delete(key);
  }
  expect(await bucket.get("cellkit/format.json")).toBeUndefined();
});

it("a node that claims the prefix and writes its record while another one looks is no original", async () => {
  const late = meanwhile(async () => {
    await claimStorage(bucket);
    await bucket.put("nodes/first.json", "{}");
  });
  await claimStorage(late);
});

it("nodes that start at once on an empty prefix all take it, with one cluster key", async () => {
  const keys = await Promise.all(
    Array.from({ length: 20 }, async (_, index) => {
      await claimStorage(bucket);
      const key = await clusterKey(bucket);
      await bucket.put(`nodes/${index}.json`, "{}");
      return key;
    }),
  );
  expect(new Set(keys).size).toBe(1);
});
