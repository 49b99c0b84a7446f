import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, it } from "vitest";
import { openBucketLedger } from "../../src/bucket/open-bucket-ledger.ts";
import { serveTestBucket } from "../support/bucket-places.ts";
import { crashRounds } from "../support/crash-rounds.ts";

const CRASH_COUNT = inject("size") === "long" ? 1_000 : 100;
/** Generous, since processes are started while other work may hold the processors. */
const TIME_LIMIT_MS = inject("size") === "long" ? 3_600_000 : 1_800_000;

it(
  `${CRASH_COUNT} programs killed before, during and after their calls to a bucket break no promise`,
  async () => {
    await using served = await serveTestBucket();
    // One for all recoveries: its connections are warm.
    const bucket = served.open();
    const result = await crashRounds(
      {
        name: "bucket",
        child: new URL("../support/bucket-crash-child.ts", import.meta.url),
        env: {
          BUCKET_OPTIONS: JSON.stringify(served.relayed),
          NODE_COMPILE_CACHE: join(tmpdir(), "cellkit-test-compile-cache"),
        },
        capacity: false,
        // There are some, and `atRest` waits for them.
        lateWrites: false,
        async open(place, { capacity: _, ...options }) {
          await served.atRest(place);
          return openBucketLedger({ ...options, bucket, name: place });
        },
      },
      { crashCount: CRASH_COUNT, seed: inject("seed") },
    );
    expect(result.crashCount).toBeGreaterThanOrEqual(CRASH_COUNT);
    // A claim of a new id alone makes two calls, and each has three points.
    for (const points of Object.values(result.points)) expect(points).toBeGreaterThanOrEqual(6);
  },
  TIME_LIMIT_MS,
);
