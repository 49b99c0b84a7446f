// Files that others put in the place of a token or a bundle: none of them is waited for, and none is read without end.
import { execFileSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readCaFile } from "../src/ca-file.ts";
import { readTokenFile } from "../src/index.ts";
import { testDirectory } from "./support/client.ts";

test("a pipe that nobody writes to, and a device without an end, are no plain files", async () => {
  const pipe = join(await testDirectory(), "pipe");
  execFileSync("mkfifo", [pipe]);
  for (const path of [pipe, "/dev/zero"]) {
    expect(await readTokenFile(path)).toMatchObject({ kind: "unreadable", problem: "is no plain file" });
    expect(await readCaFile(path)).toMatchObject({ kind: "invalid", problem: "is no plain file" });
  }
});

test("a bundle of more than 4 MiB is none", async () => {
  const path = join(await testDirectory(), "ca.crt");
  await writeFile(path, "x".repeat(4 * 1024 * 1024 + 1));
  expect(await readCaFile(path)).toMatchObject({ kind: "invalid", problem: "is longer than 4194304 bytes" });
});
