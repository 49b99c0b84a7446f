import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, inject, it, onTestFinished } from "vitest";
import { openBucket } from "../src/index.ts";
import { text } from "./support/bucket-conformance.ts";
import { startChild } from "./support/child.ts";
import { clientOptions, credentials } from "./support/server.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

const ROUND_COUNT = inject("size") === "long" ? 1_000 : 50;
/** Generous, since processes are started while other work may hold the processors. */
const TIME_LIMIT_MS = inject("size") === "long" ? 1_800_000 : 180_000;
const WRITERS_EACH = 16;

it(
  `64 writers in four processes, two of them through the server: one wins each of ${ROUND_COUNT} rounds`,
  async () => {
    const directory = join(await temporaryDirectory(), "bucket");
    const server = startChild("server-process.ts", [
      directory,
      credentials.accessKeyId,
      credentials.secretAccessKey,
    ]);
    const endpoint = String(await server.next());
    const file = pathToFileURL(directory).href;
    const racers = [0, 1, 2, 3].map((index) => {
      const [url, options] = index < 2 ? [file, {}] : ["s3://cells", clientOptions({ endpoint })];
      return startChild("racer-process.ts", [
        url,
        JSON.stringify(options),
        `p${index}`,
        String(WRITERS_EACH),
      ]);
    });
    for (const racer of racers) expect(await racer.next()).toBe("ready");
    const bucket = openBucket(file);
    onTestFinished(() => bucket.close());

    const winsOf: Record<string, number> = {};
    for (let round = 0; round < ROUND_COUNT; round += 1) {
      // Creations first; every other round replaces what the round before created.
      const key = `round/${round - (round % 2)}`;
      const etag = round % 2 === 0 ? undefined : (await bucket.get(key))?.etag;
      for (const racer of racers) racer.tell({ key, etag, round });
      const outcomes = (await Promise.all(racers.map((racer) => racer.next()))).flat();
      expect(outcomes).toEqual([`applied ${text(await bucket.get(key))}`]);
      const winner = String(outcomes[0]).split(/[ -]/)[1] ?? "";
      winsOf[winner] = (winsOf[winner] ?? 0) + 1;
    }
    expect(Object.values(winsOf).reduce((sum, wins) => sum + wins, 0)).toBe(ROUND_COUNT);
  },
  TIME_LIMIT_MS,
);
