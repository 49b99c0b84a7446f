import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { makeSocketDirectory } from "../src/socket-directory.ts";

let root: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "sockets-"));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(root, { recursive: true, force: true });
});

it("lies in the data directory, for its owner only, without what a killed predecessor left there", async () => {
  await mkdir(join(root, "sockets"));
  await writeFile(join(root, "sockets", "public"), "");
  const sockets = await makeSocketDirectory(root);
  expect(sockets).toMatchObject({
    path: join(root, "sockets"),
    publicSocket: join(root, "sockets", "public"),
    controlSocket: join(root, "sockets", "control"),
    peerSocket: join(root, "sockets", "peer"),
    peerRpcSocket: join(root, "sockets", "rpc"),
  });
  expect(await readdir(sockets.path)).toEqual([]);
  expect((await stat(sockets.path)).mode & 0o777).toBe(0o700);
  await sockets.remove();
  expect(await readdir(root)).toEqual([]);
});

it("lies in the temporary directory when the data directory's path is too long for a socket", async () => {
  const directory = join(root, "d".repeat(100));
  await mkdir(directory);
  const sockets = await makeSocketDirectory(directory);
  expect(dirname(sockets.path)).toBe(tmpdir());
  expect(await readdir(directory)).toEqual([]);
  await sockets.remove();
  await expect(stat(sockets.path)).rejects.toMatchObject({ code: "ENOENT" });
});

it("says what to do when both paths are too long, and leaves nothing", async () => {
  const directory = join(root, "d".repeat(100));
  await mkdir(directory);
  vi.stubEnv("TMPDIR", directory);
  const making = makeSocketDirectory(directory);
  await expect(making).rejects.toMatchObject({ code: "CELLKIT_ENGINE_DATA_DIRECTORY" });
  await expect(making).rejects.toThrow("set TMPDIR to a short path");
  expect(await readdir(directory)).toEqual([]);
});

it("says that the data directory cannot be used where it cannot be made", async () => {
  await expect(makeSocketDirectory(join(root, "absent"))).rejects.toMatchObject({
    code: "CELLKIT_ENGINE_DATA_DIRECTORY",
    message: expect.stringContaining("cannot be used: ENOENT"),
  });
});
