import { execFileSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { readSecretFile, SecretFileError } from "../src/index.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "cellkit-secret-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

async function written(content: string | Uint8Array): Promise<string> {
  const path = join(directory, "key");
  await writeFile(path, content, { mode: 0o600 });
  return path;
}

it.each([
  ["as it is", "swordfish", "swordfish"],
  ["without its last line break", "swordfish\n", "swordfish"],
  ["without a Windows line break", "swordfish\r\n", "swordfish"],
  ["with all line breaks but the last", "a\n\n", "a\n"],
  ["with its spaces", " a ", " a "],
])("gives the content %s", async (_, content, secret) => {
  expect(await readSecretFile(await written(content))).toBe(secret);
});

it("reads anew on each call", async () => {
  const path = await written("old");
  expect(await readSecretFile(path)).toBe("old");
  await writeFile(path, "rotated");
  expect(await readSecretFile(path)).toBe("rotated");
});

it.each([
  ["an empty file", "", {}, /is empty/],
  ["a file with nothing but a line break", "\n", {}, /is empty/],
  ["a file past the bound", "swordfish", { maxBytes: 8 }, /is longer than 8 bytes/],
  ["what is not text", new Uint8Array([0xff, 0xfe]), {}, /is not UTF-8 text/],
])("refuses %s and names the path, never the content", async (_, content, options, message) => {
  const path = await written(content);
  const error = await readSecretFile(path, options).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(SecretFileError);
  expect(error).toMatchObject({ path });
  expect((error as Error).message).toMatch(message);
  expect((error as Error).message).toContain(path);
  expect((error as Error).message).not.toContain("swordfish");
});

it("accepts a file of exactly the bound", async () => {
  expect(await readSecretFile(await written("swordfish"), { maxBytes: 9 })).toBe("swordfish");
});

it("refuses a pipe that nobody writes to, and does not wait for it", async () => {
  const path = join(directory, "pipe");
  execFileSync("mkfifo", [path]);
  await expect(readSecretFile(path)).rejects.toThrow(/is not a plain file/);
});

it("refuses an absent file and a directory", async () => {
  await expect(readSecretFile(join(directory, "none"))).rejects.toThrow(/none: does not exist/);
  await mkdir(join(directory, "folder"));
  await expect(readSecretFile(join(directory, "folder"))).rejects.toThrow(/is not a plain file/);
});

it("refuses a file that others may read only where it is told to", async () => {
  const path = await written("swordfish");
  await chmod(path, 0o640);
  expect(await readSecretFile(path)).toBe("swordfish");
  await expect(readSecretFile(path, { ownerOnly: true })).rejects.toThrow(
    /others may read it; run chmod 600/,
  );
  await chmod(path, 0o600);
  expect(await readSecretFile(path, { ownerOnly: true })).toBe("swordfish");
});
