/** Writers that race for one key, each over a client of its own. */
import type { Applied, Bucket, Rejected } from "../bucket.ts";
import { judgeRace, type RaceJudgement, type RaceObservation } from "../core/race-judgement.ts";

/** What is raced for. */
export type RaceKind = "create" | "replace";

/** One round, judged. */
export interface RaceRound {
  round: number;
  judgement: RaceJudgement;
  /** How many writers were told `applied`. */
  winnerCount: number;
  /** How many got no answer and had to read back. */
  settledCount: number;
  /** What stood in the way of an answer; makes the round `unknown`, unless what is known breaks a rule. */
  trouble?: string | undefined;
}

/** Runs one round. The key's object is removed afterwards, if the bucket lets us. @param key that nobody else uses */
export async function raceOnce(
  kind: RaceKind,
  buckets: readonly Bucket[],
  key: string,
  round: number,
  signal: AbortSignal,
): Promise<RaceRound> {
  const [first] = buckets;
  const troubles: string[] = [];
  const note = (error: unknown): undefined => {
    troubles.push(error instanceof Error ? error.message : String(error));
  };
  let settledCount = 0;
  let observation: RaceObservation = { writers: [], reads: [] };
  try {
    // One ETag for all, read before any of them writes: a slow writer must not win with the winner's.
    const etag = kind === "replace" ? await seed(first, key, signal) : undefined;
    const writers = await Promise.all(
      buckets.map(async (bucket, index) => {
        const content = `${key} ${round} writer ${index}`;
        const outcome = await write(bucket, key, content, etag, signal).catch(note);
        if (outcome?.wasSettled) settledCount += 1;
        if (outcome?.kind !== "applied") return { content, outcome: outcome?.kind ?? ("unknown" as const) };
        const ownRead = await readText(bucket, key, signal).then((text) => text ?? "nothing", note);
        return { content, outcome: outcome.kind, ...(ownRead === undefined ? {} : { ownRead }) };
      }),
    );
    observation = { writers, reads: [] };
    const reads = await Promise.all(buckets.map((bucket) => readText(bucket, key, signal)));
    observation = { writers, reads };
  } catch (error) {
    note(error);
  }
  await first?.delete(key).catch(() => undefined);
  const judgement = judgeRace(observation);
  const isDoubtful = troubles.length > 0 && (judgement === "one-winner" || judgement === "no-winner");
  return {
    round,
    judgement: isDoubtful ? "unknown" : judgement,
    winnerCount: observation.writers.filter(({ outcome }) => outcome === "applied").length,
    settledCount,
    ...(troubles[0] === undefined ? {} : { trouble: troubles[0] }),
  };
}

async function seed(bucket: Bucket | undefined, key: string, signal: AbortSignal): Promise<string> {
  if (bucket === undefined) return "";
  await write(bucket, key, `${key} as it was before`, undefined, signal);
  return (await bucket.get(key, { signal }))?.etag ?? "";
}

async function write(
  bucket: Bucket,
  key: string,
  content: string,
  etag: string | undefined,
  signal: AbortSignal,
): Promise<(Applied | Rejected) & { wasSettled: boolean }> {
  const sent =
    etag === undefined
      ? await bucket.createIfAbsent(key, content, { signal })
      : await bucket.replaceIf(key, content, etag, { signal });
  if (sent.kind !== "ambiguous") return { ...sent, wasSettled: false };
  return { ...(await sent.settle({ signal })), wasSettled: true };
}

async function readText(bucket: Bucket, key: string, signal: AbortSignal): Promise<string | undefined> {
  const object = await bucket.get(key, { signal });
  return object && Buffer.from(object.body).toString("utf8");
}
