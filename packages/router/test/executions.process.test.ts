// Every execution at most once, and nobody left without an answer, while everything that can end does: replicas of the router by
// kill -9, dispatchers after they accepted, names in DNS, tokens in their documented order.
import { ranAtMostOnce } from "@cellkit/testing";
import { expect, inject, it } from "vitest";
import { executionBytes } from "./support/execution-request.ts";
import type { LedgerKind } from "./support/ledger-places.ts";
import { type Fate, ownerTexts, Plane } from "./support/plane.ts";
import { withinMs } from "./support/within-ms.ts";

const isLong = inject("size") === "long";
const kinds: readonly LedgerKind[] = isLong ? ["directory", "bucket", "PostgreSQL"] : ["directory"];
const executionCount = isLong ? 5_000 : 300;
const submitterCount = 50;

/** What goes wrong, one after the other, over and over. */
const troubles: readonly ((plane: Plane) => unknown)[] = [
  (plane) => plane.dispatchers[0]?.fault("submit", { kind: "die", when: "after-accept" }),
  (plane) => plane.dispatchers[2]?.fault("submit", { kind: "reset", when: "after-accept" }, { times: 2 }),
  (plane) => plane.replace(0),
  (plane) => plane.tokens.rotate("backend"),
  (plane) => plane.find(0, 2),
  (plane) => plane.replace(1),
  (plane) => plane.tokens.rotate("client"),
  (plane) => plane.loseNames(),
  (plane) => plane.dispatchers[1]?.fault("submit", { kind: "die", when: "after-answer" }),
  (plane) => plane.dispatchers[0]?.restart(),
  (plane) => plane.tokens.rotate("capability"),
  (plane) => plane.find(0, 1, 2),
  (plane) => plane.dispatchers[1]?.restart(),
];

/** A fault needs a dispatcher that lives; one that died of the round before is started first. */
async function makeTrouble(plane: Plane, at: number): Promise<void> {
  await Promise.all(
    plane.dispatchers.map((each, index) => (each.alive || index !== 2 ? undefined : each.restart())),
  );
  if (at % troubles.length === 0)
    await Promise.all(plane.dispatchers.map((each) => (each.alive ? undefined : each.restart())));
  await troubles[at % troubles.length]?.(plane);
}

async function submitAll(plane: Plane): Promise<Fate[]> {
  const fates: Fate[] = [];
  // In the long run, each trouble comes some eight times.
  const roundCount = isLong ? 8 * troubles.length : troubles.length;
  let next = 0;
  let troubleCount = 0;
  let trouble: Promise<void> = Promise.resolve();
  const submitter = async (replica: number) => {
    while (next < executionCount) {
      const id = `execution-${next}`;
      next += 1;
      if (next > ((troubleCount + 0.5) * executionCount) / roundCount && troubleCount < roundCount) {
        const at = troubleCount;
        troubleCount += 1;
        trouble = trouble.then(() => withinMs(80_000, `end of trouble ${at}`, makeTrouble(plane, at)));
        // Work goes on while things break, but all of them are to break while there is work.
        if (at % 3 === 2) await trouble;
      }
      fates.push(await plane.submit(id, replica));
    }
  };
  await Promise.all(Array.from({ length: submitterCount }, (_, index) => submitter(index)));
  await trouble;
  expect(troubleCount).toBe(roundCount);
  return fates;
}

it.each(kinds)(
  "executions run at most once on a ledger in a %s, whatever dies",
  async (kind) => {
    await using plane = await Plane.open(kind);
    if (plane === undefined) return;
    const fates = await submitAll(plane);
    await plane.heal();

    const runs = ranAtMostOnce(...(await Promise.all(plane.dispatchers.map((each) => each.runs()))));
    const outcomes = new Map<string, number>();
    const unsettled: string[] = [];
    for (const fate of fates) {
      const { id, isAccepted, isAmbiguous } = fate;
      const seen = await Promise.all(
        [0, 1].map((replica) => plane.call(replica, `GET /v1/executions/${id}`)),
      );
      const texts = seen.map((answer) =>
        answer?.status === 200 ? "a record" : JSON.parse(answer?.body ?? "").error,
      );
      // Both replicas say the same, and nobody says that it was never claimed.
      expect(texts[1]).toBe(texts[0]);
      const hasRun = runs.get(id) === 1;
      // A dispatcher that died between its journal and the run's start has the one without the other.
      const known: string[] = [ownerTexts.interrupted];
      if (hasRun || isAccepted) known.push("a record");
      else known.push(ownerTexts.lost);
      expect(known, `${id} ${hasRun ? "ran" : "did not run"}; ${[...fate.told].join(", ")}`).toContain(
        texts[0],
      );
      if (texts[0] === ownerTexts.lost) unsettled.push(id);
      // Who has no record was told why, and nothing that sounds like one.
      if (!isAccepted) expect(fate.told.size, id).toBeGreaterThan(0);
      const outcome = `${isAccepted ? "accepted" : "not accepted"}${isAmbiguous ? ", once ambiguous" : ""}: ${texts[0]}`;
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
    expect(fates).toHaveLength(executionCount);
    process.stdout.write(`${kind}: ${JSON.stringify(Object.fromEntries(outcomes))}\n`);

    // What is ambiguous stays so: the same bytes once more are a read, for every id that did not run.
    for (const id of unsettled) {
      const answer = await plane.call(0, "POST /v1/executions", executionBytes(id));
      expect(JSON.parse(answer?.body ?? "").error).toBe(ownerTexts.lost);
    }
    const runsAfter = ranAtMostOnce(...(await Promise.all(plane.dispatchers.map((each) => each.runs()))));
    expect(runsAfter.size).toBe(runs.size);
    // The test has shown something only if things did go wrong.
    expect(fates.filter(({ isAmbiguous }) => isAmbiguous).length).toBeGreaterThanOrEqual(3);
    expect(fates.filter(({ told }) => told.has("no answer")).length).toBeGreaterThan(0);
    // Each of the 50 submitters may lose one run to each dispatcher that dies; most of them run all the same.
    expect(runs.size).toBeGreaterThan(0.5 * executionCount);

    const everything = [...plane.routers.flatMap(({ lines }) => lines), ...plane.answers].join("\n");
    for (const token of plane.tokens.all) expect(everything).not.toContain(token);
    expect(everything).not.toContain("router-test-secret");
    // Replicas that are the same, on whatever store, see each other and are not alarmed for long.
    expect(everything).toContain("\nrouter_replicas 2\n");
    expect(everything).not.toContain("\nrouter_fingerprint_failing 1\n");
    expect(everything).not.toContain("has another list of dispatchers");
  },
  isLong ? 900_000 : 300_000,
);
