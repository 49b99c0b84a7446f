import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { s3Credentials } from "../../src/index.ts";

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "s3-credentials-"));
  for (const name of Object.keys(process.env)) if (name.startsWith("AWS_")) vi.stubEnv(name, undefined);
  vi.stubEnv("AWS_CONFIG_FILE", join(directory, "config"));
  vi.stubEnv("AWS_SHARED_CREDENTIALS_FILE", join(directory, "credentials"));
  vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
});
afterEach(async () => {
  vi.unstubAllEnvs();
  // A renewal that a test did not wait for may still write here.
  await rm(directory, { recursive: true, force: true, maxRetries: 20 });
});

it("answers those that were given", async () => {
  const credentials = { accessKeyId: "given", secretAccessKey: "hidden" };
  expect(await s3Credentials("s3://cells", { credentials })()).toMatchObject(credentials);
});

it("answers those of the environment", async () => {
  vi.stubEnv("AWS_ACCESS_KEY_ID", "environment");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "hidden");
  vi.stubEnv("AWS_SESSION_TOKEN", "token");
  expect(await s3Credentials("s3://cells")()).toEqual({
    accessKeyId: "environment",
    secretAccessKey: "hidden",
    sessionToken: "token",
  });
});

it("answers those of a profile, and renews temporary ones before they expire", async () => {
  const count = join(directory, "count");
  const script = join(directory, "keys.cjs");
  // Four minutes are less than the five before which they are renewed.
  await writeFile(
    script,
    `const { appendFileSync, readFileSync } = require("node:fs");
    appendFileSync(${JSON.stringify(count)}, "x");
    const AccessKeyId = "key-" + readFileSync(${JSON.stringify(count)}, "utf8").length;
    const Expiration = new Date(Date.now() + 240_000).toISOString();
    console.log(JSON.stringify({ Version: 1, AccessKeyId, SecretAccessKey: "hidden", SessionToken: "t", Expiration }));`,
  );
  await writeFile(
    join(directory, "config"),
    `[profile fleet]\ncredential_process = ${process.execPath} ${script}\n`,
  );
  vi.stubEnv("AWS_PROFILE", "fleet");
  const credentials = s3Credentials("s3://cells");
  expect(await credentials()).toEqual({ accessKeyId: "key-1", secretAccessKey: "hidden", sessionToken: "t" });
  await vi.waitFor(async () => expect((await credentials()).accessKeyId).not.toBe("key-1"), 40_000);
});

it("says that there are none", async () => {
  await expect(s3Credentials("s3://cells")()).rejects.toMatchObject({
    code: "CELLKIT_BUCKET_ACCESS_DENIED",
    message: expect.stringContaining("no credentials found: set AWS_ACCESS_KEY_ID"),
  });
});
