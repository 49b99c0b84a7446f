import { describe, expect, it } from "vitest";
import { parseBucketUrl, resolveOptions } from "../src/options.ts";

describe("a bucket URL", () => {
  it.each([
    ["s3://cells", { kind: "s3", bucket: "cells", prefix: "" }],
    ["s3://cells/", { kind: "s3", bucket: "cells", prefix: "" }],
    ["s3://cells/a/b", { kind: "s3", bucket: "cells", prefix: "a/b/" }],
    ["s3://cells/a//", { kind: "s3", bucket: "cells", prefix: "a/" }],
    ["file:///var/cells", { kind: "file", directory: "/var/cells" }],
    ["file:///var/with%20space/", { kind: "file", directory: "/var/with space" }],
    ["file:///", { kind: "file", directory: "/" }],
  ])("%s is understood", (url, location) => {
    expect(parseBucketUrl(url)).toEqual(location);
  });

  it.each([
    "",
    "cells",
    "gs://cells",
    "s3://",
    "s3:///a",
    "s3://Upper",
    "s3://a_b",
    "s3://cells/../up",
    "s3://cells/a//b",
    "s3://cells/a?x=1",
    "file://host/dir",
    "file:dir",
    "file:///a%2fb",
  ])("%j is refused", (url) => {
    expect(() => parseBucketUrl(url)).toThrow(expect.objectContaining({ code: "CELLKIT_BUCKET_URL" }));
  });

  it.each([
    "s3://user:hunter2@cells",
    "s3://cells/a?key=hunter2",
    "file://user:hunter2@[/x",
    "gs://u:hunter2@b",
  ])("of %j nothing is shown that may be a password", (url) => {
    expect(() => parseBucketUrl(url)).toThrow(/^bucket URL (s3|file|gs):…: /);
    expect(() => parseBucketUrl(url)).not.toThrow(expect.objectContaining({ cause: expect.anything() }));
  });
});

describe("options", () => {
  it.each(["hunter2@host", "u:hunter2@host", "http://u:hunter2@host:x"])(
    "say nothing of what may be a password in the endpoint %j",
    (endpoint) => {
      expect(() => resolveOptions({ endpoint }, {})).toThrow(/endpoint (is )?"(http:\/\/)?…@host/);
    },
  );

  it("have defaults", () => {
    expect(resolveOptions({}, {})).toEqual({
      endpoint: undefined,
      region: "us-east-1",
      credentials: undefined,
      timeoutMs: 10_000,
      settleTimeoutMs: 60_000,
      maxBytes: 64 * 1024 * 1024,
      readAttemptCount: 3,
    });
  });

  it("take the region from the environment", () => {
    expect(resolveOptions({}, { AWS_REGION: "eu-central-1" }).region).toBe("eu-central-1");
    expect(resolveOptions({}, { AWS_DEFAULT_REGION: "eu-west-1" }).region).toBe("eu-west-1");
    expect(resolveOptions({ region: "x" }, { AWS_REGION: "eu-central-1" }).region).toBe("x");
  });

  it.each([
    { timeoutMs: 0 },
    { timeoutMs: 1.5 },
    { settleTimeoutMs: -1 },
    { maxBytes: 0 },
    { readAttemptCount: 0 },
    { endpoint: "localhost:9000" },
    { endpoint: "http://" },
  ])("%j is refused", (options) => {
    expect(() => resolveOptions(options, {})).toThrow(
      expect.objectContaining({ code: "CELLKIT_BUCKET_OPTION" }),
    );
  });
});
