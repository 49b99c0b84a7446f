import type * as Fs from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { type Ambiguous, openBucket } from "../../src/index.ts";
import { text } from "../support/bucket-conformance.ts";
import { sendSigned } from "../support/raw-request.ts";
import { startServer } from "../support/server.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

/** What the disk was asked for, in order, and what it shall refuse. */
const disk = vi.hoisted(() => ({ calls: [] as string[], failing: new Map<string, string>() }));

vi.mock("node:fs", async (importOriginal) => {
  const fs = await importOriginal<typeof Fs>();
  const fail = (name: string) => {
    disk.calls.push(name);
    const code = disk.failing.get(name);
    return code === undefined ? undefined : Object.assign(new TypeError(`made up ${code}`), { code });
  };
  return {
    ...fs,
    default: fs,
    renameSync(from: string, to: string) {
      const error = fail("rename");
      if (error !== undefined) throw error;
      fs.renameSync(from, to);
    },
    fdatasync(fd: number, done: (error: Error | null) => void) {
      const error = fail("fdatasync");
      if (error === undefined) fs.fdatasync(fd, done);
      else done(error);
    },
    fsync(fd: number, done: (error: Error | null) => void) {
      const error = fail("fsync");
      if (error === undefined) fs.fsync(fd, done);
      else done(error);
    },
  };
});

beforeEach(() => {
  disk.failing.clear();
});

async function openFile() {
  const bucket = openBucket(pathToFileURL(join(await temporaryDirectory(), "bucket")).href);
  onTestFinished(() => bucket.close());
  await bucket.put("dir/first", "x");
  disk.calls.length = 0;
  return bucket;
}

describe("a write", () => {
  it("is acknowledged after its file, its name and its directory are on disk, in this order", async () => {
    const bucket = await openFile();
    await bucket.put("dir/k", "x");
    expect(disk.calls).toEqual(["fdatasync", "rename", "fsync"]);
  });

  it("in a new folder waits for all folders above it too", async () => {
    const bucket = await openFile();
    await bucket.put("dir/new/deep/k", "x");
    expect(disk.calls).toEqual(["fdatasync", "rename", "rename", "fsync", "fsync", "fsync"]);
  });

  it("that loses does not touch the disk", async () => {
    const bucket = await openFile();
    expect(await bucket.createIfAbsent("dir/first", "y")).toEqual({ kind: "rejected" });
    expect(disk.calls).toEqual([]);
  });
});

describe("a disk that fails", () => {
  it.each([
    ["fdatasync", "EIO", "CELLKIT_BUCKET_DISK"],
    ["fdatasync", "ENOSPC", "CELLKIT_BUCKET_FULL"],
    ["rename", "EDQUOT", "CELLKIT_BUCKET_FULL"],
    ["rename", "EACCES", "CELLKIT_BUCKET_ACCESS_DENIED"],
  ])("before the object is visible (%s: %s): nothing was written", async (call, errno, code) => {
    const bucket = await openFile();
    disk.failing.set(call, errno);
    await expect(bucket.put("dir/k", "x")).rejects.toMatchObject({ code });
    await expect(bucket.createIfAbsent("dir/k", "x")).rejects.toMatchObject({ code });
    disk.failing.clear();
    expect(await bucket.get("dir/k")).toBeUndefined();
    expect((await bucket.createIfAbsent("dir/k", "x")).kind).toBe("applied");
  });

  it("after that: a put says so, a conditional write is ambiguous and settles", async () => {
    const bucket = await openFile();
    disk.failing.set("fsync", "EIO");
    await expect(bucket.put("dir/k", "x")).rejects.toMatchObject({ code: "CELLKIT_BUCKET_UNDECIDED" });
    const write = (await bucket.createIfAbsent("dir/other", "ours")) as Ambiguous;
    expect(write).toMatchObject({ kind: "ambiguous", cause: { code: "CELLKIT_BUCKET_UNDECIDED" } });
    disk.failing.clear();
    expect((await write.settle()).kind).toBe("applied");
    expect(text(await bucket.get("dir/other"))).toBe("ours");
  });

  it("is seen by the server's clients as 500 or 507, and by the server's owner", async () => {
    const server = await startServer();
    const put = (key: string) => sendSigned(server, { method: "PUT", target: `/cells/${key}`, body: "x" });
    disk.failing.set("fdatasync", "ENOSPC");
    expect(await put("k")).toMatchObject({ status: 507, code: "InsufficientStorage" });
    disk.failing.set("fdatasync", "EIO");
    expect(await put("k")).toMatchObject({ status: 500, code: "InternalError" });
    disk.failing.set("fdatasync", "EACCES");
    expect(await put("k")).toMatchObject({ status: 500, code: "InternalError" });
    disk.failing.clear();
    disk.failing.set("fsync", "EIO");
    expect(await put("k")).toMatchObject({ status: 500, code: "InternalError" });
    disk.failing.clear();
    expect((await put("k")).status).toBe(200);
    expect(server.failures.map((error) => (error as Error & { code: string }).code)).toEqual([
      "CELLKIT_BUCKET_FULL",
      "CELLKIT_BUCKET_DISK",
      "CELLKIT_BUCKET_ACCESS_DENIED",
      "CELLKIT_BUCKET_UNDECIDED",
    ]);
  });
});
