import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { tokenFile as createTokenFile, testBackendToken } from "../../src/index.ts";

/** A directory that is gone after the test. */
export async function directory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "cellkit-testing-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** The path of a file with a token in it, which is gone after the test. */
export async function tokenFile(token = testBackendToken): Promise<string> {
  const file = await createTokenFile(token);
  onTestFinished(() => file.close());
  return file.path;
}
