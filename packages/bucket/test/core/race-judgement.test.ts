import { describe, expect, it } from "vitest";
import { judgeRace, type RaceJudgement, type RaceObservation } from "../../src/core/race-judgement.ts";

const won = (content: string, ownRead?: string) => ({
  content,
  outcome: "applied" as const,
  ...(ownRead === undefined ? {} : { ownRead }),
});
const lost = (content: string) => ({ content, outcome: "rejected" as const });
const unknown = (content: string) => ({ content, outcome: "unknown" as const });

describe("a race", () => {
  it.each<[rule: string, RaceObservation, RaceJudgement]>([
    [
      "is as it must be when one wins and all read it",
      { writers: [lost("a"), won("b", "b")], reads: ["b", "b"] },
      "one-winner",
    ],
    [
      "has two owners when two are told that they won",
      { writers: [won("a"), won("b")], reads: ["b"] },
      "several-winners",
    ],
    [
      "has two owners, whatever became of the others",
      { writers: [won("a"), won("b"), unknown("c")], reads: [] },
      "several-winners",
    ],
    [
      "has nobody when all were refused",
      { writers: [lost("a"), lost("b")], reads: [undefined] },
      "no-winner",
    ],
    [
      "loses a write when one was refused and stands",
      { writers: [lost("a"), lost("b")], reads: ["a"] },
      "lost-write",
    ],
    [
      "loses a write when one that was refused stands for some",
      { writers: [lost("a"), won("b")], reads: ["b", "a"] },
      "lost-write",
    ],
    [
      "loses a write when nobody reads what won",
      { writers: [lost("a"), won("b")], reads: ["before", "before"] },
      "lost-write",
    ],
    [
      "loses a write when there is nothing",
      { writers: [lost("a"), won("b")], reads: [undefined] },
      "lost-write",
    ],
    [
      "has a stale read when somebody reads what was before",
      { writers: [lost("a"), won("b")], reads: ["b", "before"] },
      "stale-read",
    ],
    [
      "has a stale read when the winner did not see it at once",
      { writers: [lost("a"), won("b", "before")], reads: ["b", "b"] },
      "stale-read",
    ],
    [
      "is unknown when the only hope is",
      { writers: [lost("a"), unknown("b")], reads: [undefined] },
      "unknown",
    ],
    [
      "is unknown when another may have won too",
      { writers: [won("a"), unknown("b")], reads: ["a"] },
      "unknown",
    ],
  ])("%s", (_, observation, expected) => {
    expect(judgeRace(observation)).toBe(expected);
  });
});
