// Races on the keys it is told: racer-process.ts URL OPTIONS_JSON NAME WRITERS. For each line {key, etag, round} on its input
// all its writers write at once; it answers with the names of those whose write was applied.
import { createInterface } from "node:readline";
import { openBucket } from "../../src/index.ts";

const [url = "", options = "{}", name = "", writers = "1"] = process.argv.slice(2);
const bucket = openBucket(url, JSON.parse(options));
await bucket.get("warm-up");
process.stdout.write('"ready"\n');
for await (const line of createInterface({ input: process.stdin })) {
  const { key, etag, round } = JSON.parse(line) as { key: string; etag: string | undefined; round: number };
  const outcomes = await Promise.all(
    Array.from({ length: Number(writers) }, async (_, index) => {
      const writer = `${name}-${index}-${round}`;
      const write = await (etag === undefined
        ? bucket.createIfAbsent(key, writer)
        : bucket.replaceIf(key, writer, etag));
      return write.kind === "rejected" ? [] : [`${write.kind} ${writer}`];
    }),
  );
  process.stdout.write(`${JSON.stringify(outcomes.flat())}\n`);
}
