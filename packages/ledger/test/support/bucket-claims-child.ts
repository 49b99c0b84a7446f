// Claims all ids it is given at once, when it is told to, and prints how many were answered what:
// bucket-claims-child.ts NAME OWNER IDS_JSON, the bucket in BUCKET_OPTIONS.
import { once } from "node:events";
import { openBucket } from "@cellkit/bucket";
import { openBucketLedger } from "../../src/bucket/open-bucket-ledger.ts";

const [name = "", owner = "", ids = "[]"] = process.argv.slice(2);
const bucket = openBucket("s3://cells", JSON.parse(process.env["BUCKET_OPTIONS"] ?? "{}"));
const ledger = await openBucketLedger({ bucket, name, closeBucket: true });
process.stdout.write("ready\n");
await once(process.stdin, "data");
const claims = await Promise.all(
  (JSON.parse(ids) as string[]).map((id) => ledger.claim(id, "body", async () => owner)),
);
process.stdout.write(`${JSON.stringify(claims.map(({ kind }) => kind))}\n`);
await ledger.close();
process.stdin.destroy();
