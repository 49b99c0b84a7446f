import { type Bucket, openBucket } from "@cellkit/bucket";
import { afterAll, beforeAll, describe, it } from "vitest";
import { openBucketLedger } from "../../src/bucket/open-bucket-ledger.ts";
import { ledgerConformance } from "../../src/conformance/index.ts";
import { type ServedBucket, serveTestBucket } from "../support/bucket-places.ts";

let served: ServedBucket;
beforeAll(async () => {
  served = await serveTestBucket();
});
afterAll(() => served[Symbol.asyncDispose]());

/** A place is a prefix; every handle has a client of its own. */
const stores: Record<string, (place: string) => Bucket> = {
  "a bucket in a directory": (place) => openBucket(new URL(`./${place}`, served.fileUrl).href),
  "a bucket behind the embedded server": (place) => openBucket(`s3://cells/${place}`, served.options),
};

describe.each(Object.entries(stores))("a ledger in %s", (_, openPlace) => {
  const cases = ledgerConformance(
    (place, options) => openBucketLedger({ ...options, bucket: openPlace(place), closeBucket: true }),
    {
      lacks: { capacity: "a bucket has no counter" },
      plant: async (place, key, bytes) => {
        await using bucket = openPlace(place);
        await bucket.put(`ledger/executions/${key}.json`, bytes);
      },
    },
  );
  for (const { name, skip, run } of cases) it.skipIf(skip !== undefined)(name, run);
});
