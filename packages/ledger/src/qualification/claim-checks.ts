/** What every store must show: claims of several processes that race, conflict, and see each other. */
import type { Agent } from "./agent-connection.ts";
import type { ClaimAnswer } from "./agent-protocol.ts";
import { failed, notTested, type Outcome, passed } from "./check.ts";
import type { Stage } from "./stage.ts";

const BODY = "the same bytes";

/** How many ids race in one round; a POSIX ledger makes one or a few groups of them. */
const RACE_ID_COUNT = 24;
const RACE_ROUND_COUNT = 4;

/** How many ids each agent claims for itself, all at once. */
const APART_ID_COUNT = 32;

/** Makes every agent open the probe's ledger. All must see the same one. */
export async function openEverywhere(stage: Stage): Promise<Outcome> {
  const opened: string[] = [];
  // The first one makes it.
  for (const agent of stage.agents)
    opened.push((await agent.ask("open", { requireExisting: false })).ledgerId);
  const different = new Set(opened).size;
  return different === 1
    ? passed(`${opened.length} agents opened the same ledger`)
    : failed(
        `${opened.length} agents see ${different} different ledgers: is it the same directory for all of them?`,
      );
}

/** The same ids with the same body from all agents at once: one new each, and all agree on the owner. */
export async function claimsRace(stage: Stage): Promise<Outcome> {
  let wrong: string | undefined;
  const tally = new Tally();
  for (let round = 0; round < RACE_ROUND_COUNT; round++) {
    const word = stage.word();
    const ids = Array.from({ length: RACE_ID_COUNT }, (_, at) => `${word}-${at}`);
    const answers = await Promise.all(
      stage.agents.map(
        async (agent) => (await agent.ask("claim", { ids, body: BODY, owner: agent.owner })).answers,
      ),
    );
    for (const [at, id] of ids.entries()) {
      const ofId = answers.map((each) => each[at]).filter((each) => each !== undefined);
      for (const each of ofId) tally.add(each);
      wrong ??= wrongRace(id, ofId);
    }
    wrong ??= await disagreement(stage.agents, ids);
  }
  if (wrong !== undefined) return failed(wrong);
  return tally.outcome(
    `${RACE_ROUND_COUNT * RACE_ID_COUNT} ids, each claimed by ${stage.agents.length} processes at once: one new each`,
  );
}

/** Counts refusals, which are no wrong answers. */
class Tally {
  #refusedCount = 0;
  #count = 0;
  #first: string | undefined;

  add(answer: ClaimAnswer): void {
    this.#count += 1;
    if (answer.kind !== "error") return;
    this.#refusedCount += 1;
    this.#first ??= `${answer.code}: ${answer.message}`;
  }

  outcome(detail: string): Outcome {
    return this.#refusedCount === 0
      ? passed(detail)
      : notTested(
          `${this.#refusedCount} of ${this.#count} claims were refused, the others were right; ${this.#first}`,
        );
  }
}

/** What is wrong with the answers to one id that all claimed with the same body. */
export function wrongRace(id: string, answers: readonly ClaimAnswer[]): string | undefined {
  const winners = answers.filter(({ kind }) => kind === "new");
  const refusedCount = answers.filter(({ kind }) => kind === "error").length;
  if (winners.length > 1) return `${winners.length} processes were told that ${id} is new and theirs`;
  if (winners.length === 0 && refusedCount === 0) return `nobody was told that ${id} is new`;
  const owners = new Set(answers.flatMap((each) => ("backend" in each ? [each.backend] : [])));
  if (owners.size > 1) return `${id} has ${owners.size} owners: ${[...owners].join(", ")}`;
  const odd = answers.find(({ kind }) => kind === "conflict" || kind === "full");
  return odd === undefined ? undefined : `${id} was answered ${odd.kind}, though all claimed the same bytes`;
}

/** Whether agents name different owners of an id. */
async function disagreement(agents: readonly Agent[], ids: readonly string[]): Promise<string | undefined> {
  const seen = await Promise.all(
    agents.map(async (agent) => (await agent.ask("lookup", { ids: [...ids] })).owners),
  );
  for (const [at, id] of ids.entries()) {
    const owners = new Set(seen.map((each) => each[at]));
    if (owners.size > 1)
      return `looked up by ${agents.length} processes, ${id} has the owners ${[...owners].join(", ")}`;
  }
  return undefined;
}

/** Different ids from all agents at once: all new, all found by the others, all counted. */
export async function claimsApart(stage: Stage): Promise<Outcome> {
  const word = stage.word();
  const [counter] = stage.agents;
  if (counter === undefined) return notTested("no agent");
  const before = (await counter.ask("count")).count;
  const tally = new Tally();
  const idsOf = new Map(
    stage.agents.map((agent, number) => [
      agent,
      Array.from({ length: APART_ID_COUNT }, (_, at) => `${word}-${number}-${at}`),
    ]),
  );
  let newCount = 0;
  let odd: string | undefined;
  await Promise.all(
    [...idsOf].map(async ([agent, ids]) => {
      const { answers } = await agent.ask("claim", { ids, body: BODY, owner: agent.owner });
      for (const [at, answer] of answers.entries()) {
        tally.add(answer);
        if (answer.kind === "new") newCount += 1;
        else if (answer.kind !== "error") odd ??= `${ids[at]}, claimed once, was answered ${answer.kind}`;
      }
    }),
  );
  if (odd !== undefined) return failed(odd);
  const after = (await counter.ask("count")).count;
  if (after - before < newCount)
    return failed(`${newCount} claims were new, and the count grew by ${after - before}`);
  for (const [agent, ids] of idsOf) {
    const others = stage.agents.filter((other) => other !== agent);
    odd ??= await disagreement(others, ids);
  }
  if (odd !== undefined) return failed(odd);
  return tally.outcome(`${newCount} different ids from ${stage.agents.length} processes at once: all new`);
}

/** Another body for an id that is taken: a conflict for everybody, and nothing changes. */
export async function claimsConflict(stage: Stage): Promise<Outcome> {
  const [first, ...others] = stage.agents;
  if (first === undefined) return notTested("no agent");
  const ids = [stage.word()];
  await first.ask("claim", { ids, body: BODY, owner: first.owner });
  const answers = await Promise.all(
    others.map(
      async (agent) =>
        (await agent.ask("claim", { ids, body: "other bytes", owner: agent.owner })).answers[0],
    ),
  );
  const odd = answers.find((answer) => answer?.kind !== "conflict");
  if (odd !== undefined) return failed(`other bytes for a taken id were answered ${odd.kind}`);
  const { owners } = await first.ask("lookup", { ids });
  return owners[0] === first.owner
    ? passed("other bytes for a taken id are refused, and its owner stays")
    : failed(`after a conflict the owner is ${owners[0]}`);
}

/** What one process was told to be new, another one finds at once, although it looked before and found nothing. */
export async function claimsSeen(stage: Stage): Promise<Outcome> {
  let count = 0;
  for (const [writer, reader] of [...stage.pairs(6), ...stage.pairs(6)]) {
    const ids = [stage.word()];
    const before = (await reader.ask("lookup", { ids })).owners[0];
    const claimed = (await writer.ask("claim", { ids, body: BODY, owner: writer.owner })).answers[0];
    if (claimed?.kind !== "new") return notTested(`a claim was answered ${claimed?.kind}`);
    const after = (await reader.ask("lookup", { ids })).owners[0];
    if (before !== null || after !== writer.owner)
      return failed(`${reader.name} found ${after ?? "nothing"} right after ${writer.name} had claimed`);
    count += 1;
  }
  return passed(`${count} claims were found by another process at once`);
}
