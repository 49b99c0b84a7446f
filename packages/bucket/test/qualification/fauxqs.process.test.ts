import { expect, it } from "vitest";
import { openBucket, qualifyBucket } from "../../src/index.ts";
import { startChild } from "../support/child.ts";
import { clientOptions } from "../support/server.ts";

it("fauxqs, which takes conditions and keeps none, is found out: step by step, and by every race", async () => {
  const endpoint = String(await startChild("fauxqs-process.ts", []).next());
  const open = () => openBucket("s3://cells/fleet", clientOptions({ endpoint }));
  const found = await qualifyBucket(open, { roundCount: 4 });
  expect(found.verdict).toBe("violated");
  expect(found.probe.filter(({ result }) => result === "violated").map(({ rule }) => rule)).toEqual([
    "refuses to create a key that has an object",
    "keeps the object when a creation is refused",
    "refuses to replace an object under an ETag of before",
    "keeps the object when a replacement is refused",
    "refuses to replace what is no longer there",
  ]);
  for (const kind of ["create", "replace"] as const)
    expect(found.races[kind].counts["several-winners"]).toBe(4);
  expect(found.races.create.rounds[0]).toMatchObject({ judgement: "several-winners", winnerCount: 8 });
});
