import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { testBackendToken } from "../../src/index.ts";

/** A directory that is gone after the test. */
export async function directory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "cellkit-testing-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** A file with a token in it. */
export async function tokenFile(token = testBackendToken): Promise<string> {
  const path = join(await directory(), "token");
  await writeFile(path, token);
  return path;
}
