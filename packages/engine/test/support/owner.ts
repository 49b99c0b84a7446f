// A process that owns an engine, to be killed by a test: `node owner.ts '<options as JSON>'`. Prints one line once it serves.
import { openBucket } from "@cellkit/bucket";
import { createWorkerdEngine } from "../../src/index.ts";

const options = JSON.parse(process.argv[2] ?? "{}");
const { bucketUrl, endpoint, credentials } = options;
const ignore = (): void => undefined;
const engine = createWorkerdEngine({
  ...options,
  bucket: openBucket(bucketUrl, { endpoint, region: "us-east-1", credentials }),
  node: "owner",
  log: { debug: ignore, info: ignore, warn: ignore, error: ignore },
});
await engine.start();
const { publicSocket, clusterPort } = engine;
process.stdout.write(`${JSON.stringify({ ...(await engine.snapshot()), publicSocket, clusterPort })}\n`);
