import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readSecrets, readVars } from "../src/variables-file.ts";

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "variables-"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** A file of the test, and its path. */
async function write(name: string, content: string | Uint8Array, mode = 0o600): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, content, { mode });
  return path;
}

it("reads vars that anybody may read, in both forms", async () => {
  expect(await readVars(await write("env", "# pods\nA='1'\nB=two words\n", 0o644))).toEqual({
    A: "1",
    B: "two words",
  });
  expect(await readVars(await write("json", '{"A":"1"}', 0o644))).toEqual({ A: "1" });
});

it("refuses secrets that anybody may read", async () => {
  const path = await write("open", "A=hidden", 0o644);
  await expect(readSecrets(path)).rejects.toMatchObject({
    code: "CELLKIT_ENGINE_SECRETS_FILE",
    message: `the secrets file ${path} is open to everybody: chmod 600 ${path}`,
  });
});

describe("a file of vars is refused", () => {
  it.each([
    ["that is not there", async () => join(directory, "absent"), /cannot be opened: ENOENT/],
    ["of more than 1 MiB", () => write("large", Buffer.alloc(1024 * 1024 + 1, "#")), /larger than 1048576/],
    [
      "with a line that is none",
      () => write("odd", "A=1\nhidden"),
      /cannot be used: line 2 is not KEY=VALUE$/,
    ],
    [
      "with values that are no strings",
      () => write("deep", '{"A":{"hidden":1}}'),
      /not one object of strings$/,
    ],
    [
      "that is a directory",
      () => mkdir(join(directory, "folder"), { recursive: true }).then(() => join(directory, "folder")),
      /is no regular file$/,
    ],
    ["that is a FIFO", async () => fifo(), /is no regular file$/],
  ])("%s", async (_, make, problem) => {
    const path = await make();
    const reading = readVars(path);
    await expect(reading).rejects.toMatchObject({ code: "CELLKIT_ENGINE_VARS_FILE" });
    await expect(reading).rejects.toThrow(problem);
    await expect(reading).rejects.toThrow(`the vars file ${path} `);
    await expect(reading).rejects.not.toThrow("hidden");
  });
});

/** A FIFO that nobody writes to: a plain open would wait for ever. */
function fifo(): string {
  const path = join(directory, "fifo");
  execFileSync("mkfifo", [path]);
  return path;
}
