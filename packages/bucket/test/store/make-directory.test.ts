import { mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openBucket } from "../../src/index.ts";
import { loadOrCreateCredentials } from "../../src/server/index.ts";
import { makeDirectory } from "../../src/store/make-directory.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "cellkit-directory-"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const isDirectory = async (path: string): Promise<boolean> => (await stat(path)).isDirectory();

describe("makeDirectory", () => {
  it("makes those above it too, with the mode, and takes what is there", async () => {
    const path = join(root, "a/b/c");
    await makeDirectory(path, { mode: 0o700 });
    expect(await isDirectory(path)).toBe(true);
    expect((await stat(join(root, "a"))).mode & 0o777).toBe(0o700);
    await makeDirectory(path);
    expect((await stat(path)).mode & 0o777).toBe(0o700);
  });

  it("may be called by several at the same time", async () => {
    await Promise.all(Array.from({ length: 8 }, () => makeDirectory(join(root, "a/b/c"))));
    expect(await isDirectory(join(root, "a/b/c"))).toBe(true);
  });

  it("goes through a link to a directory", async () => {
    await symlink(root, join(root, "link"));
    await makeDirectory(join(root, "link/a"));
    expect(await isDirectory(join(root, "a"))).toBe(true);
  });

  it("fails where a file is in the way", async () => {
    await writeFile(join(root, "file"), "");
    await expect(makeDirectory(join(root, "file"))).rejects.toThrow(/EEXIST.*file/);
    await expect(makeDirectory(join(root, "file/a"))).rejects.toThrow(/ENOTDIR.*file\/a/);
  });
});

describe.runIf(process.platform === "linux")("below /proc, where no directory can be made", () => {
  it("making one fails with its path instead of going on for ever", async () => {
    await expect(makeDirectory("/proc/cellkit-none/a")).rejects.toThrow(/ENOENT.*'\/proc\/cellkit-none'/);
  });

  it("a bucket says that it cannot be used", async () => {
    await using bucket = openBucket("file:///proc/cellkit-none/a");
    await expect(bucket.put("key", "")).rejects.toThrow(/\/proc\/cellkit-none\/a/);
  });

  it("a key pair is not kept", async () => {
    await expect(loadOrCreateCredentials("/proc/cellkit-none/a/pair.json")).rejects.toThrow(
      /\/proc\/cellkit-none\/a\/pair\.json cannot be written/,
    );
  });
});
