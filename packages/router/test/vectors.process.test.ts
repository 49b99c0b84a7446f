// The specification's own cases against the daemon as a process. The long run plays all; a sample plays those of one in nineteen, and
// vectors.test.ts plays all of them against a router in its own process.
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { cases, emptyPlane, expectRaw, expectVector, rawCases } from "./support/concerned-vectors.ts";
import { rawCall } from "./support/raw-call.ts";
import { RouterProcess } from "./support/router-process.ts";
import { type RouterUnderTest, runVector, type VectorPlace } from "./support/vector-run.ts";

async function start(place: VectorPlace): Promise<RouterUnderTest> {
  const { client, backend, capability } = place.tokenFiles;
  const router = new RouterProcess([
    `--backends=${place.backends.join(",")}`,
    `--ownership-dir=${place.ledgerDirectory}`,
    ...["--client-token-file", client, "--token-file", backend, "--capability-token-file", capability],
    ...(place.capacity === undefined ? [] : [`--ledger-capacity=${place.capacity}`]),
    `--ledger-lock-ms=${place.isLocked ? 200 : 60_000}`,
  ]);
  await router.start();
  return { port: router.port, stop: () => router.kill() };
}

const step = inject("size") === "long" ? 1 : 19;
// A process without a dispatcher does not start.
const played = cases.filter(({ backends }, at) => backends.length > 0 && at % step === 0);

describe("the daemon over TCP", () => {
  it.each(played.map((vector) => [vector.name, vector] as const))("%s", async (_name, vector) => {
    expectVector(vector, await runVector(vector, start));
  });
});

describe("raw requests to the daemon", () => {
  const started = Promise.withResolvers<number>();
  const finished = Promise.withResolvers<void>();
  let run: Promise<unknown>;
  beforeAll(async () => {
    run = runVector(emptyPlane, async (place) => {
      const router = await start(place);
      started.resolve(router.port);
      await finished.promise;
      return router;
    });
    await Promise.race([started.promise, run]);
  });
  afterAll(async () => {
    finished.resolve();
    await run;
  });

  it.each(rawCases)("%s", async (_name, vector) => {
    expect.hasAssertions();
    const port = await started.promise;
    expectRaw(
      await rawCall(port, vector.request, { halfClose: vector.halfCloseAfterWrite === true }),
      vector,
    );
  });
});
