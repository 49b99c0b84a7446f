import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { RouterClient, type RouterClientOptions } from "../../src/index.ts";

/** Where nobody listens: a port that no test is given, so that none takes it meanwhile. */
export const nobody = "http://127.0.0.1:1";

/** For `expect.poll`: a busy machine stops a process for longer than the second that it waits by itself. */
export const patient = { timeout: 30_000 };

export const token = "client-credential-of-the-tests";

/** A directory that is gone after the test. */
export async function testDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "cellkit-execution-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** A token file with what a test wants in it. */
export async function tokenFile(content: string | Uint8Array = `${token}\n`): Promise<string> {
  const path = join(await testDirectory(), "token");
  await writeFile(path, content);
  return path;
}

/** A client that does not make a test wait between tries. */
export async function quickClient(
  url: string,
  options: Partial<RouterClientOptions> = {},
): Promise<RouterClient> {
  return new RouterClient({ url, tokenFile: await tokenFile(), pollMinMs: 1, pollMaxMs: 5, ...options });
}

/** What a promise is rejected with. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => {
      throw new TypeError(`nothing failed, but there is ${JSON.stringify(value)}`);
    },
    (error: unknown) => error,
  );
}
