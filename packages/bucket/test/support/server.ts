import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { BucketOptions } from "../../src/index.ts";
import { type BucketServer, type ServeBucketOptions, serveBucket } from "../../src/server/index.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

/** AWS's documented example pair. */
export const credentials = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
};

/** A server on a directory of its own, closed when the test ends. */
export async function startServer(
  options: Partial<ServeBucketOptions> = {},
): Promise<BucketServer & { directory: string; failures: Error[] }> {
  const directory = options.directory ?? join(await temporaryDirectory(), "bucket");
  const failures: Error[] = [];
  const server = await serveBucket({
    credentials,
    onFailure: (error) => failures.push(error),
    ...options,
    directory,
  });
  onTestFinished(() => server.close());
  return Object.assign(server, { directory, failures });
}

/** What `openBucket` needs to reach a server. */
export function clientOptions(server: { endpoint: string }, more: BucketOptions = {}): BucketOptions {
  return { endpoint: server.endpoint, region: "us-east-1", credentials, ...more };
}
