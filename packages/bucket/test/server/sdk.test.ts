import { createHash } from "node:crypto";
import { join } from "node:path";
import { Readable } from "node:stream";
import {
  AbortMultipartUploadCommand,
  type ChecksumAlgorithm,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetBucketLocationCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListBucketsCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  ListPartsCommand,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { describe, expect, it, onTestFinished } from "vitest";
import { serveBucket } from "../../src/server/index.ts";
import { credentials, startServer } from "../support/server.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const Bucket = "cells";

/** The SDK with its own defaults: checksums on. */
function clientOf({ endpoint }: { endpoint: string }): S3Client {
  const client = new S3Client({
    endpoint,
    region: "us-east-1",
    forcePathStyle: true,
    credentials,
    maxAttempts: 1,
  });
  onTestFinished(() => client.destroy());
  return client;
}

async function setUp() {
  const server = await startServer();
  const client = clientOf(server);
  const read = async (Key: string) => {
    const answer = await client.send(new GetObjectCommand({ Bucket, Key }));
    return await answer.Body?.transformToString();
  };
  return { server, client, read };
}

describe("the AWS SDK", () => {
  it.each<ChecksumAlgorithm>(["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"])(
    "puts with a %s checksum, and gets it back with the object",
    async (ChecksumAlgorithm) => {
      const { client, read } = await setUp();
      const put = await client
        .send(new PutObjectCommand({ Bucket, Key: "k", Body: "content", ChecksumAlgorithm }))
        .catch((error: Error) => error);
      if (put instanceof Error) {
        // The SDK has CRC64NVME only with a package of its own; our value is checked against AWS's in checksums.test.ts.
        expect([ChecksumAlgorithm, put.message]).toEqual(["CRC64NVME", expect.stringContaining("CRT")]);
        return;
      }
      expect(put.ChecksumType).toBe("FULL_OBJECT");
      expect(await read("k")).toBe("content");
      const got = await client.send(new GetObjectCommand({ Bucket, Key: "k", ChecksumMode: "ENABLED" }));
      const name = `Checksum${ChecksumAlgorithm}` as const;
      expect(got[name]).toBe(put[name]);
      expect(got[name]).toEqual(expect.any(String));
      await got.Body?.transformToByteArray();
    },
  );

  it("puts a stream (aws-chunked, with a trailing checksum)", async () => {
    const { client, read } = await setUp();
    const Body = Readable.from([Buffer.from("one "), Buffer.from("two")]);
    await client.send(new PutObjectCommand({ Bucket, Key: "k", Body, ContentLength: 7 }));
    expect(await read("k")).toBe("one two");
  });

  it("puts megabytes after asking first (Expect: 100-continue)", async () => {
    const { client } = await setUp();
    const Body = Buffer.alloc(5_000_000, "0123456789");
    const { ETag } = await client.send(new PutObjectCommand({ Bucket, Key: "k", Body }));
    expect(ETag).toBe(`"${createHash("md5").update(Body).digest("hex")}"`);
    const answer = await client.send(new GetObjectCommand({ Bucket, Key: "k", Range: "bytes=-12" }));
    expect(await answer.Body?.transformToString()).toBe("890123456789");
    expect(answer.ContentRange).toBe("bytes 4999988-4999999/5000000");
  });

  it("gets back headers and metadata", async () => {
    const { client } = await setUp();
    const beforeMs = Date.now();
    const kept = {
      ContentType: "text/plain",
      ContentEncoding: "gzip",
      ContentLanguage: "de",
      ContentDisposition: "inline",
      CacheControl: "no-store",
      Metadata: { a: "1", "b-c": "x y" },
    };
    const { ETag } = await client.send(new PutObjectCommand({ Bucket, Key: "k", Body: "x", ...kept }));
    const head = await client.send(new HeadObjectCommand({ Bucket, Key: "k" }));
    expect(head).toMatchObject({ ...kept, ETag, ContentLength: 1, AcceptRanges: "bytes" });
    // Whole seconds, by the clock of the disk.
    expect(head.LastModified?.getTime()).toBeGreaterThan(beforeMs - 60_000);
    expect(head.LastModified?.getTime()).toBeLessThan(Date.now() + 60_000);
  });

  it("meets the conditions of reads", async () => {
    const { client } = await setUp();
    const { ETag } = await client.send(new PutObjectCommand({ Bucket, Key: "k", Body: "x" }));
    const get = (condition: object) =>
      client
        .send(new GetObjectCommand({ Bucket, Key: "k", ...condition }))
        .then(async (answer) => {
          await answer.Body?.transformToByteArray();
          return 200;
        })
        .catch((error: { $metadata: { httpStatusCode?: number } }) => error.$metadata.httpStatusCode);
    const [past, future] = [new Date(Date.now() - 86_400_000), new Date(Date.now() + 86_400_000)];
    expect(await get({ IfMatch: ETag })).toBe(200);
    expect(await get({ IfMatch: '"other"' })).toBe(412);
    expect(await get({ IfMatch: `"other", ${ETag}` })).toBe(200);
    expect(await get({ IfMatch: ETag?.replaceAll('"', "") })).toBe(200);
    expect(await get({ IfMatch: "*" })).toBe(200);
    expect(await get({ IfMatch: `W/${ETag}` })).toBe(412);
    expect(await get({ IfMatch: "*,*" })).toBe(412);
    expect(await get({ IfMatch: '"*"' })).toBe(412);
    expect(await get({ IfNoneMatch: ETag })).toBe(304);
    expect(await get({ IfNoneMatch: `W/${ETag}` })).toBe(304);
    expect(await get({ IfNoneMatch: `"*", W/"a,b" , ${ETag}` })).toBe(304);
    expect(await get({ IfNoneMatch: "*" })).toBe(304);
    expect(await get({ IfNoneMatch: "*,*" })).toBe(200);
    expect(await get({ IfNoneMatch: '"other"' })).toBe(200);
    expect(await get({ IfModifiedSince: past })).toBe(200);
    expect(await get({ IfModifiedSince: future })).toBe(304);
    expect(await get({ IfUnmodifiedSince: past })).toBe(412);
    expect(await get({ IfUnmodifiedSince: future })).toBe(200);
    expect(await get({ Range: "bytes=1-" })).toBe(416);
    expect(await get({ Range: "lines=1-" })).toBe(200);
  });

  it("meets the conditions of writes and deletions", async () => {
    const { client, read } = await setUp();
    const put = new PutObjectCommand({ Bucket, Key: "k", Body: "one", IfNoneMatch: "*" });
    const { ETag } = await client.send(put);
    await expect(client.send(put)).rejects.toMatchObject({ name: "PreconditionFailed" });
    const replace = (IfMatch: string | undefined, Key = "k") =>
      client.send(new PutObjectCommand({ Bucket, Key, Body: "two", ...(IfMatch && { IfMatch }) }));
    await expect(replace('"other"')).rejects.toMatchObject({ name: "PreconditionFailed" });
    for (const never of [`W/${ETag}`, "*,*", `*, "other"`]) {
      await expect(replace(never)).rejects.toMatchObject({ name: "PreconditionFailed" });
    }
    await expect(replace(ETag, "none")).rejects.toMatchObject({ name: "NoSuchKey" });
    await replace(ETag);
    expect(await read("k")).toBe("two");
    const remove = (IfMatch: string | undefined) =>
      client.send(new DeleteObjectCommand({ Bucket, Key: "k", ...(IfMatch && { IfMatch }) }));
    await expect(remove(ETag)).rejects.toMatchObject({ name: "PreconditionFailed" });
    await remove("*");
    await expect(read("k")).rejects.toMatchObject({ name: "NoSuchKey" });
    await remove(undefined);
  });

  it("lists page by page, and a page stays right while keys come and go", async () => {
    const { client } = await setUp();
    for (const Key of ["a/1", "a/2", "b", "c/1", "d"])
      await client.send(new PutObjectCommand({ Bucket, Key, Body: "x" }));
    const page = async (ContinuationToken: string | undefined) =>
      await client.send(
        new ListObjectsV2Command({
          Bucket,
          Delimiter: "/",
          MaxKeys: 2,
          ...(ContinuationToken && { ContinuationToken }),
        }),
      );
    const first = await page(undefined);
    expect(first.CommonPrefixes).toEqual([{ Prefix: "a/" }]);
    expect(first.Contents?.map(({ Key }) => Key)).toEqual(["b"]);
    expect([first.KeyCount, first.IsTruncated]).toEqual([2, true]);
    await client.send(new DeleteObjectCommand({ Bucket, Key: "b" }));
    await client.send(new PutObjectCommand({ Bucket, Key: "a/3", Body: "x" }));
    const second = await page(first.NextContinuationToken);
    expect(second.CommonPrefixes).toEqual([{ Prefix: "c/" }]);
    expect(second.Contents?.map(({ Key }) => Key)).toEqual(["d"]);
    expect([second.KeyCount, second.IsTruncated, second.NextContinuationToken]).toEqual([
      2,
      false,
      undefined,
    ]);
    const none = await client.send(new ListObjectsV2Command({ Bucket, MaxKeys: 0 }));
    expect([none.KeyCount, none.IsTruncated]).toEqual([0, false]);
    await expect(page("!")).rejects.toMatchObject({ name: "InvalidArgument" });
  });

  it("lists keys that XML cannot hold, url-encoded", async () => {
    const { client } = await setUp();
    await client.send(new PutObjectCommand({ Bucket, Key: "a\u0001b/ü&", Body: "x" }));
    const listed = await client.send(new ListObjectsV2Command({ Bucket, EncodingType: "url" }));
    expect(listed.Contents?.map(({ Key }) => decodeURIComponent(Key ?? ""))).toEqual(["a\u0001b/ü&"]);
  });

  it("deletes many at once, each on its own", async () => {
    const { client } = await setUp();
    for (const Key of ["a", "b&<", "c"]) await client.send(new PutObjectCommand({ Bucket, Key, Body: Key }));
    const answer = await client.send(
      new DeleteObjectsCommand({
        Bucket,
        Delete: {
          Objects: [
            { Key: "a" },
            { Key: "b&<" },
            { Key: "c", ETag: '"other"' },
            { Key: "absent" },
            { Key: "../up" },
            { Key: "a", VersionId: "1" },
          ],
        },
      }),
    );
    expect(answer.Deleted?.map(({ Key }) => Key)).toEqual(["a", "b&<", "absent"]);
    expect(answer.Errors?.map(({ Key, Code }) => [Key, Code])).toEqual([
      ["c", "PreconditionFailed"],
      ["../up", "InvalidArgument"],
      ["a", "NotImplemented"],
    ]);
    const quiet = await client.send(
      new DeleteObjectsCommand({ Bucket, Delete: { Quiet: true, Objects: [{ Key: "c" }] } }),
    );
    expect([quiet.Deleted, quiet.Errors]).toEqual([undefined, undefined]);
    expect((await client.send(new ListObjectsV2Command({ Bucket }))).KeyCount).toBe(0);
  });

  it("uploads in parts", async () => {
    const { client, read } = await setUp();
    const start = () =>
      client.send(
        new CreateMultipartUploadCommand({
          Bucket,
          Key: "k",
          ContentType: "text/plain",
          Metadata: { a: "1" },
        }),
      );
    const { UploadId } = await start();
    const target = { Bucket, Key: "k", UploadId };
    const part = async (PartNumber: number, Body: string) => ({
      PartNumber,
      ETag: (await client.send(new UploadPartCommand({ ...target, PartNumber, Body }))).ETag,
    });
    const third = await part(3, "third");
    await part(1, "replaced");
    const first = await part(1, "first ");
    expect(
      (await client.send(new ListPartsCommand(target))).Parts?.map(({ PartNumber, Size }) => [
        PartNumber,
        Size,
      ]),
    ).toEqual([
      [1, 6],
      [3, 5],
    ]);
    const complete = (Parts: { PartNumber: number; ETag: string | undefined }[], more: object = {}) =>
      client.send(
        new CompleteMultipartUploadCommand({
          ...target,
          ...more,
          MultipartUpload: {
            Parts: Parts.map(({ PartNumber, ETag }) => ({ PartNumber, ...(ETag && { ETag }) })),
          },
        }),
      );
    await expect(complete([third, first])).rejects.toMatchObject({ name: "InvalidPartOrder" });
    await expect(
      complete([first, { PartNumber: 2, ETag: '"00000000000000000000000000000000"' }]),
    ).rejects.toMatchObject({
      name: "InvalidPart",
    });
    await expect(read("k")).rejects.toMatchObject({ name: "NoSuchKey" });
    const { ETag } = await complete([first, third], { IfNoneMatch: "*" });
    const md5s = ["first ", "third"].map((text) => createHash("md5").update(text).digest());
    expect(ETag).toBe(`"${createHash("md5").update(Buffer.concat(md5s)).digest("hex")}-2"`);
    expect(await read("k")).toBe("first third");
    expect(await client.send(new HeadObjectCommand({ Bucket, Key: "k" }))).toMatchObject({
      ETag,
      ContentType: "text/plain",
      Metadata: { a: "1" },
    });
    await expect(complete([first])).rejects.toMatchObject({ name: "NoSuchUpload" });

    const second = await start();
    const listed = await client.send(new ListMultipartUploadsCommand({ Bucket }));
    expect(listed.Uploads?.map((upload) => [upload.Key, upload.UploadId])).toEqual([["k", second.UploadId]]);
    await client.send(new AbortMultipartUploadCommand({ ...target, UploadId: second.UploadId }));
    expect((await client.send(new ListMultipartUploadsCommand({ Bucket }))).Uploads).toBeUndefined();
    const foreign = { ...target, UploadId: "../../objects", PartNumber: 1, Body: "x" };
    await expect(client.send(new UploadPartCommand(foreign))).rejects.toMatchObject({ name: "NoSuchUpload" });
  });

  it("finds the bucket, its place and its neighbours", async () => {
    const { client } = await setUp();
    await client.send(new HeadBucketCommand({ Bucket }));
    await expect(client.send(new HeadBucketCommand({ Bucket: "other" }))).rejects.toMatchObject({
      $metadata: { httpStatusCode: 404 },
    });
    expect((await client.send(new GetBucketLocationCommand({ Bucket }))).LocationConstraint ?? "").toBe("");
    expect((await client.send(new ListBucketsCommand({}))).Buckets?.map(({ Name }) => Name)).toEqual([
      Bucket,
    ]);
  });
});

describe("a server", () => {
  it("keeps its objects over a restart", async () => {
    const { server, client } = await setUp();
    await client.send(new PutObjectCommand({ Bucket, Key: "k", Body: "x" }));
    await server.close();
    const again = await startServer({ directory: server.directory });
    const answer = await clientOf(again).send(new GetObjectCommand({ Bucket, Key: "k" }));
    expect(await answer.Body?.transformToString()).toBe("x");
  });

  it("listens on loopback only, unless told otherwise", async () => {
    const { server } = await setUp();
    expect(server.endpoint).toBe(`http://127.0.0.1:${server.port}`);
  });

  it("says when its port is taken, and leaves no trace of having tried", async () => {
    const { server } = await setUp();
    const directory = join(await temporaryDirectory(), "second");
    await expect(serveBucket({ directory, credentials, port: server.port })).rejects.toMatchObject({
      code: "CELLKIT_BUCKET_LISTEN",
      message: expect.stringContaining("EADDRINUSE"),
    });
  });

  it("refuses options that cannot be meant", async () => {
    const directory = await temporaryDirectory();
    for (const wrong of [{ bucketName: "Cells" }, { credentials: { ...credentials, secretAccessKey: "" } }]) {
      await expect(serveBucket({ directory, credentials, ...wrong })).rejects.toMatchObject({
        code: "CELLKIT_BUCKET_OPTION",
      });
    }
  });

  it("finishes what runs before it closes, and closes once", async () => {
    const { server, client } = await setUp();
    const writes = Array.from({ length: 10 }, (_, index) =>
      client.send(new PutObjectCommand({ Bucket, Key: `k${index}`, Body: "x" })).then(
        () => "written",
        () => "refused",
      ),
    );
    await Promise.race(writes);
    const [outcomes] = await Promise.all([Promise.all(writes), server.close(), server.close()]);
    expect(outcomes).toContain("written");
  });
});
