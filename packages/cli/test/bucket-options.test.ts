import { openBucket } from "@cellkit/bucket";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { bucketOptions } from "../src/bucket-options.ts";

const schema = z.strictObject(bucketOptions);
const parse = (bucket: string) => schema.safeParse({ bucket });

describe("--bucket takes", () => {
  it.each([
    ["s3://cells", "s3://cells"],
    ["s3://cells/", "s3://cells/"],
    ["s3://cells/a/b.c", "s3://cells/a/b.c"],
    ["cells", "s3://cells"],
    ["cells/fleet", "s3://cells/fleet"],
    ["file:///srv/cells", "file:///srv/cells"],
  ])("%s, and a bucket opens on it", async (text, url) => {
    const bucket = parse(text).data?.bucket ?? "";
    expect(bucket).toBe(url);
    await openBucket(bucket, { credentials: { accessKeyId: "a", secretAccessKey: "b" } }).close();
  });
});

describe("--bucket refuses", () => {
  it.each([
    ["s3://Cells", /must be s3:\/\/BUCKET/],
    ["s3://", /must be s3:\/\/BUCKET/],
    ["s3://cells/../other", /must be s3:\/\/BUCKET/],
    ["s3://cells//a", /must be s3:\/\/BUCKET/],
    ["s3://cells/a?b", /must be s3:\/\/BUCKET/],
    ["file://srv", /must be s3:\/\/BUCKET/],
    ["https://cells", /must be s3:\/\/BUCKET/],
    ["gs://cells", /on S3 stores only/],
  ])("%s", (text, message) => {
    expect(parse(text).error?.issues).toEqual([
      expect.objectContaining({ path: ["bucket"], message: expect.stringMatching(message) }),
    ]);
  });
});
