/** Whether a bucket may be trusted with claims, leases and pointers. */
import { randomUUID } from "node:crypto";
import type { Bucket } from "../bucket.ts";
import type { RaceJudgement } from "../core/race-judgement.ts";
import {
  type QualificationOptions,
  type ResolvedQualificationOptions,
  resolveQualificationOptions,
} from "./options.ts";
import { PROBE_STEP_COUNT, type ProbeStep, probeBucket } from "./probe.ts";
import { type RaceKind, type RaceRound, raceOnce } from "./race.ts";

/** The rounds of one kind of race. */
export interface RaceSummary {
  /** How many rounds were run. */
  roundCount: number;
  /** How many of them ended in each way; all but `one-winner` are in `rounds` with their details. */
  counts: Record<RaceJudgement, number>;
  /** Those that did not end with one winner; the first hundred. */
  rounds: RaceRound[];
}

/** What was found out about a bucket. */
export interface BucketQualification {
  /** As it was opened, without credentials. */
  url: string;
  /**
   * - `qualified`: every rule held, and each round had one winner, whose content was read by everybody.
   * - `violated`: some rule was broken. Nothing that counts on one owner may use this bucket.
   * - `unknown`: no rule was seen broken, and not everything could be tried.
   */
  verdict: "qualified" | "violated" | "unknown";
  /** One sentence for each thing that kept it from being qualified; empty if it is. */
  problems: string[];
  writerCount: number;
  /** One writer, one step after the other. */
  probe: ProbeStep[];
  /** Many writers at once. */
  races: Record<RaceKind, RaceSummary>;
  durationMs: number;
}

const KEPT_ROUND_COUNT = 100;

/**
 * Finds out whether a bucket keeps its conditions, also when many write at once: for N writers and M rounds each of creation and
 * replacement, one winner each, whose content stands and is read at once by all. Objects are written below a fresh folder of `prefix` and
 * removed as it goes. It takes about `roundCount * 2 * (writerCount * 2 + 2)` requests. A verdict holds for the version and configuration
 * of the store that was asked; ask again after each upgrade.
 * @param bucketOrOpen a bucket, or what opens one: then each writer has a client, and connections, of its own, closed at the end
 * @throws BucketOptionError (CELLKIT_BUCKET_OPTION), the signal's reason; a store that fails is no error but the verdict `unknown`
 */
export async function qualifyBucket(
  bucketOrOpen: Bucket | (() => Bucket),
  options: QualificationOptions = {},
): Promise<BucketQualification> {
  const resolved = resolveQualificationOptions(options);
  const opens = typeof bucketOrOpen === "function";
  const buckets = Array.from({ length: resolved.writerCount }, () => (opens ? bucketOrOpen() : bucketOrOpen));
  try {
    return await qualify(buckets, resolved);
  } finally {
    if (opens) await Promise.all(buckets.map((bucket) => bucket.close()));
  }
}

async function qualify(
  buckets: readonly Bucket[],
  { signal: callers, timeLimitMs, prefix, roundCount, onProgress }: ResolvedQualificationOptions,
): Promise<BucketQualification> {
  const startedMs = performance.now();
  const limit = AbortSignal.timeout(timeLimitMs);
  const signal = callers === undefined ? limit : AbortSignal.any([callers, limit]);
  const folder = `${prefix}/${randomUUID()}`;
  const [first] = buckets;
  let doneCount = 0;
  callers?.throwIfAborted();
  const probe =
    first === undefined
      ? []
      : await probeBucket(first, `${folder}/probe`, signal, ({ rule, result, detail }) => {
          doneCount += 1;
          const problem = result === "held" ? undefined : `${rule}: ${detail}`;
          onProgress({ phase: "probe", doneCount, totalCount: PROBE_STEP_COUNT, problem });
        });
  callers?.throwIfAborted();
  let isReachable = probe.every(({ result }) => result !== "unknown");
  const races = { create: emptySummary(), replace: emptySummary() };
  for (const kind of ["create", "replace"] as const) {
    const summary = races[kind];
    for (let round = 1; round <= roundCount && isReachable; round += 1) {
      const done = await raceOnce(kind, buckets, `${folder}/${kind}/${round}`, round, signal);
      callers?.throwIfAborted();
      addRound(summary, done);
      const problem = done.judgement === "one-winner" ? undefined : roundProblem(kind, done);
      onProgress({ phase: kind, doneCount: round, totalCount: roundCount, problem });
      // A store that does not answer will not do so in the next round; what was found until then counts.
      isReachable = done.trouble === undefined;
    }
  }
  const { verdict, problems } = conclude(probe, races, roundCount);
  return {
    url: first?.url ?? "",
    verdict,
    problems,
    writerCount: buckets.length,
    probe,
    races,
    durationMs: Math.round(performance.now() - startedMs),
  };
}

function emptySummary(): RaceSummary {
  const counts = {
    "one-winner": 0,
    "several-winners": 0,
    "no-winner": 0,
    "lost-write": 0,
    "stale-read": 0,
    unknown: 0,
  };
  return { roundCount: 0, counts, rounds: [] };
}

function addRound(summary: RaceSummary, round: RaceRound): void {
  summary.roundCount += 1;
  summary.counts[round.judgement] += 1;
  if (round.judgement !== "one-winner" && summary.rounds.length < KEPT_ROUND_COUNT)
    summary.rounds.push(round);
}

function roundProblem(kind: RaceKind, { round, judgement, winnerCount, trouble }: RaceRound): string {
  const why = trouble === undefined ? "" : ` (${trouble})`;
  return `round ${round} of ${kind}: ${judgement.replace("-", " ")}, ${winnerCount} told that they won${why}`;
}

function conclude(
  probe: readonly ProbeStep[],
  races: Record<RaceKind, RaceSummary>,
  roundCount: number,
): Pick<BucketQualification, "verdict" | "problems"> {
  const problems = probe
    .filter(({ result, detail }) => result !== "held" && detail !== "not tried")
    .map(({ rule, result, detail }) => `${result}: it ${rule}: ${detail}`);
  let isViolated = probe.some(({ result }) => result === "violated");
  let isUnknown = probe.some(({ result }) => result === "unknown");
  for (const kind of ["create", "replace"] as const) {
    const { counts, roundCount: run, rounds } = races[kind];
    for (const [judgement, count] of Object.entries(counts)) {
      if (judgement === "one-winner" || count === 0) continue;
      if (judgement === "unknown") isUnknown = true;
      else isViolated = true;
      const trouble = rounds.find((round) => round.judgement === judgement)?.trouble;
      problems.push(
        `${judgement === "unknown" ? "unknown" : "violated"}: ${judgement.replace("-", " ")} in ${count} of ${run} rounds of ${kind}` +
          (trouble === undefined ? "" : `: ${trouble}`),
      );
    }
    if (run === roundCount) continue;
    isUnknown = true;
    problems.push(`unknown: ${roundCount - run} of ${roundCount} rounds of ${kind} were not run`);
  }
  return { verdict: isViolated ? "violated" : isUnknown ? "unknown" : "qualified", problems };
}
