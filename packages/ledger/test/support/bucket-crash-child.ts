// Works on a ledger in a bucket and dies where it is told to: bucket-crash-child.ts TASK_JSON, the bucket in BUCKET_OPTIONS.
//
// Each HTTP call has three points: before anything of it was sent; when all of it was sent, so that the store does what it
// was asked for a client that is dead; and when the answer is there but nothing has looked at it.
import { type Channel, channel } from "node:diagnostics_channel";
import type { ClientRequest } from "node:http";
import { openBucket } from "@cellkit/bucket";
import { openBucketLedger } from "../../src/bucket/open-bucket-ledger.ts";
import { runCrashChild } from "./crash-child.ts";

await runCrashChild(async (place, options, pass) => {
  on("http.client.request.created", ({ request }) => {
    pass();
    request.once("finish", pass);
  });
  on("http.client.response.finish", pass);
  const bucket = openBucket("s3://cells", JSON.parse(process.env["BUCKET_OPTIONS"] ?? "{}"));
  const { capacity: _, ...rest } = options;
  return openBucketLedger({ ...rest, bucket, name: place, closeBucket: true });
});

/** Hears of node's own HTTP client. */
function on(name: string, listen: (message: { request: ClientRequest }) => void): void {
  const source: Channel = channel(name);
  source.subscribe((message) => listen(message as { request: ClientRequest }));
}
