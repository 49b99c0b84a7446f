import { chmod, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadOrCreateCredentials } from "../../src/server/index.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

describe("the credentials file", () => {
  it("is made once, for its owner only, by whoever comes first", async () => {
    const directory = await temporaryDirectory();
    const file = join(directory, "deep", "credentials.json");
    const loaded = await Promise.all(Array.from({ length: 8 }, () => loadOrCreateCredentials(file)));
    expect(loaded.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(loaded.map(({ secretAccessKey }) => secretAccessKey)).size).toBe(1);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(join(directory, "deep"))).toEqual(["credentials.json"]);
    expect(await loadOrCreateCredentials(file)).toEqual({ ...loaded[0], created: false });
  });

  it.each([
    ["is not JSON", '{"secretAccessKey":"topsecret-topsecret', 0o600, /is not JSON/],
    ["lacks a key", '{"accessKeyId":"AK"}', 0o600, /is not JSON with accessKeyId/],
    ["is too large", " ".repeat(5000), 0o600, /larger than 4096/],
    [
      "may be read by others",
      '{"accessKeyId":"AK","secretAccessKey":"topsecret-topsecret"}',
      0o644,
      /mode 644/,
    ],
  ])("that %s is refused, without a word of its content", async (_, content, mode, message) => {
    const file = join(await temporaryDirectory(), "credentials.json");
    await writeFile(file, content);
    await chmod(file, mode);
    const refusal = await loadOrCreateCredentials(file).catch((error: unknown) => error);
    expect(refusal).toMatchObject({
      code: "CELLKIT_BUCKET_CREDENTIALS_FILE",
      message: expect.stringMatching(message),
    });
    expect(JSON.stringify(refusal) + String(refusal) + String((refusal as Error).cause)).not.toContain(
      "topsecret",
    );
  });

  it("that is a directory is refused", async () => {
    const directory = await temporaryDirectory();
    await chmod(directory, 0o700);
    await expect(loadOrCreateCredentials(directory)).rejects.toMatchObject({
      code: "CELLKIT_BUCKET_CREDENTIALS_FILE",
    });
  });
});
