/** What the outcomes of writers that raced for one key say of the store. */

/** What one writer was told, and what was read afterwards. Texts are the contents written, all different. */
export interface RaceObservation {
  writers: readonly {
    content: string;
    /** `unknown`: no answer, and nothing to find out its outcome by. */
    outcome: "applied" | "rejected" | "unknown";
    /** What the writer read at once, when it was told `applied`. */
    ownRead?: string | undefined;
  }[];
  /** What everybody reads once all are done; undefined where the key has no object. */
  reads: readonly (string | undefined)[];
}

/**
 * - `one-winner`: as it must be.
 * - `several-winners`: more than one was told that its write was made. Two owners of one thing.
 * - `no-winner`: everybody was told that the key was taken, and nobody had taken it.
 * - `lost-write`: what stands is not what the winner wrote, or is what somebody wrote who was refused.
 * - `stale-read`: some read does not show what stands.
 * - `unknown`: not all outcomes are known, and those that are break no rule.
 */
export type RaceJudgement =
  | "one-winner"
  | "several-winners"
  | "no-winner"
  | "lost-write"
  | "stale-read"
  | "unknown";

/** Judges one round. The gravest finding is the answer. */
export function judgeRace({ writers, reads }: RaceObservation): RaceJudgement {
  const winners = writers.filter(({ outcome }) => outcome === "applied");
  const unknown = writers.filter(({ outcome }) => outcome === "unknown");
  const [winner] = winners;
  if (winners.length > 1) return "several-winners";
  const refused = writers.filter(({ outcome }) => outcome === "rejected").map(({ content }) => content);
  if (reads.some((read) => read !== undefined && refused.includes(read))) return "lost-write";
  if (winner === undefined) return unknown.length > 0 ? "unknown" : "no-winner";
  const right = reads.filter((read) => read === winner.content);
  if (reads.length > 0 && right.length === 0) return "lost-write";
  if (right.length < reads.length || (winner.ownRead ?? winner.content) !== winner.content)
    return "stale-read";
  return unknown.length > 0 ? "unknown" : "one-winner";
}
