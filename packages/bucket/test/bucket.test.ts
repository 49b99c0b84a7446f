import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, expectTypeOf, it, onTestFinished } from "vitest";
import {
  type BucketOptions,
  type GetOptions,
  type NotModified,
  openBucket,
  type StoredObject,
} from "../src/index.ts";
import { collect, describeBucket, text } from "./support/bucket-conformance.ts";
import { clientOptions, startServer } from "./support/server.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

async function openFile(options: BucketOptions = {}) {
  const bucket = openBucket(pathToFileURL(join(await temporaryDirectory(), "bucket")).href, options);
  onTestFinished(() => bucket.close());
  return bucket;
}

async function openS3(options: BucketOptions = {}, prefix = "") {
  const server = await startServer();
  const bucket = openBucket(`s3://cells${prefix}`, clientOptions(server, options));
  onTestFinished(() => bucket.close());
  return bucket;
}

describeBucket("file://", openFile);
describeBucket("s3://", openS3);
describeBucket("s3:// with a prefix", (options) => openS3(options, "/some/Prefix"));

it("a prefix keeps two buckets in one apart", async () => {
  const server = await startServer();
  const open = (url: string) => openBucket(url, clientOptions(server));
  const [one, two, all] = [open("s3://cells/p"), open("s3://cells/p/"), open("s3://cells")];
  await one.put("k", "1");
  await all.put("pk", "2");
  expect(text(await two.get("k"))).toBe("1");
  expect((await collect(all.list(""))).map(({ key }) => key)).toEqual(["p/k", "pk"]);
  expect((await collect(two.list(""))).map(({ key }) => key)).toEqual(["k"]);
  await Promise.all([one, two, all].map((bucket) => bucket.close()));
});

it("file:// and the server share one directory, their ETags and their conditions", async () => {
  const server = await startServer();
  const remote = openBucket("s3://cells", clientOptions(server));
  const local = openBucket(pathToFileURL(server.directory).href);
  const { etag } = await remote.put("k", "one");
  expect((await local.get("k"))?.etag).toBe(etag);
  const [a, b] = await Promise.all([
    local.replaceIf("k", "local", etag),
    remote.replaceIf("k", "remote", etag),
  ]);
  expect([a.kind, b.kind].sort()).toEqual(["applied", "rejected"]);
  expect(text(await remote.get("k"))).toBe(a.kind === "applied" ? "local" : "remote");
  for (let round = 0; round < 10; round += 1) {
    const writes = Array.from({ length: 8 }, (_, writer) =>
      (writer % 2 === 0 ? local : remote).createIfAbsent(`r${round}`, `${writer}`),
    );
    const kinds = (await Promise.all(writes)).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === "applied")).toHaveLength(1);
  }
  await Promise.all([local.close(), remote.close()]);
});

it("only a read with an ETag may answer that nothing changed", async () => {
  const bucket = await openFile();
  const { etag } = await bucket.put("k", "1");
  const signal = AbortSignal.timeout(10_000);
  expectTypeOf(await bucket.get("k")).toEqualTypeOf<StoredObject | undefined>();
  expectTypeOf(await bucket.get("k", { signal, maxBytes: 1 })).toEqualTypeOf<StoredObject | undefined>();
  expectTypeOf(await bucket.get("k", { ifNoneMatch: undefined })).toEqualTypeOf<StoredObject | undefined>();
  const perhaps: string | undefined = await Promise.resolve(etag);
  const any: GetOptions = { signal };
  type Either = StoredObject | NotModified | undefined;
  expectTypeOf(await bucket.get("k", { ifNoneMatch: perhaps })).toEqualTypeOf<Either>();
  expectTypeOf(await bucket.get("k", { ifNoneMatch: perhaps as string | undefined })).toEqualTypeOf<Either>();
  expectTypeOf(await bucket.get("k", any)).toEqualTypeOf<Either>();
  expect(await bucket.get("k", { ifNoneMatch: undefined })).toMatchObject({ etag, sizeBytes: 1 });
});
