/** What every store must show when processes die, come back, or are frozen: nothing that was acknowledged is lost. */
import { setTimeout as delay } from "node:timers/promises";
import type { Agent } from "./agent-connection.ts";
import { failed, notTested, type Outcome, passed } from "./check.ts";
import { wrongRace } from "./claim-checks.ts";
import type { Stage } from "./stage.ts";

const BODY = "the same bytes";

/** Deaths in the middle of claims, over all machines, but at least one on each. */
const DEATH_COUNT = 3;

/** How many acknowledgements a victim gets before it dies. */
const LIFE_CLAIM_COUNT = 20;

/** For a victim to get going. */
const START_MS = 20_000;

/** How long the others may take to claim again after a death. A lock goes with its process at once; a store may have a lease. */
const RECOVERY_MS = 60_000;

/** How long the frozen one stays so. */
const FROZEN_MS = 500;

/** kill -9 in the middle of claims: everything acknowledged is there for the others, and they go on. */
export async function processDeath(stage: Stage): Promise<Outcome> {
  let acknowledgedCount = 0;
  let slowestMs = 0;
  const places = stage.places.flatMap((place) =>
    Array.from({ length: Math.ceil(DEATH_COUNT / stage.places.length) }, () => place),
  );
  const victims = await Promise.all(places.map((place) => stage.start(place)));
  try {
    for (const agent of victims) {
      const victim = await beginClaims(stage, agent);
      // At a random moment of a claim.
      await delay(Math.random() * 5);
      agent.signal("kill");
      await agent.close();
      const checked = await survive(stage, victim);
      if (typeof checked === "string") return failed(checked);
      acknowledgedCount += agent.acknowledged.length;
      slowestMs = Math.max(slowestMs, checked.recoveryMs);
    }
  } finally {
    await Promise.all(victims.map((agent) => agent.close()));
  }
  return passed(
    `${victims.length} processes were killed in the middle of claims: all ${acknowledgedCount} acknowledged ones are there, and the others claimed again within ${Math.round(slowestMs)} ms`,
  );
}

interface Victim {
  agent: Agent;
  prefix: string;
}

async function beginClaims(stage: Stage, agent: Agent): Promise<Victim> {
  const prefix = stage.word();
  await agent.ask("open", { requireExisting: true });
  await agent.ask("claimOn", { prefix, body: BODY, owner: agent.owner });
  const deadlineMs = performance.now() + START_MS;
  while (agent.isAlive && agent.acknowledged.length < LIFE_CLAIM_COUNT && performance.now() < deadlineMs)
    await delay(1);
  return { agent, prefix };
}

/** What the others find after a death; a sentence if it is wrong. */
async function survive(stage: Stage, { agent, prefix }: Victim): Promise<string | { recoveryMs: number }> {
  const began = performance.now();
  const [first] = stage.agents;
  if (first === undefined) return "no agent is left";
  for (;;) {
    const { answers } = await first.ask("claim", { ids: [stage.word()], body: BODY, owner: first.owner });
    if (answers[0]?.kind === "new") break;
    if (answers[0]?.kind !== "error") return `an id that nobody had claimed was answered ${answers[0]?.kind}`;
    if (performance.now() - began > RECOVERY_MS)
      return `nobody could claim for ${RECOVERY_MS / 1_000} s after a death: ${answers[0].code}`;
  }
  const recoveryMs = performance.now() - began;
  const ids = agent.acknowledged.slice(-1_000);
  for (const survivor of stage.agents) {
    const { owners } = ids.length === 0 ? { owners: [] } : await survivor.ask("lookup", { ids });
    const lost = owners.findIndex((owner) => owner !== agent.owner);
    if (lost >= 0)
      return `${ids[lost]} was acknowledged to ${agent.name}, which died; ${survivor.name} finds ${owners[lost] ?? "nothing"}`;
  }
  // The one that was under way: recorded or not, but the same for all.
  const next = `${prefix}-${agent.acknowledged.length}`;
  const answers = await Promise.all(
    stage.agents.map(
      async (each) => (await each.ask("claim", { ids: [next], body: BODY, owner: each.owner })).answers[0],
    ),
  );
  const known = answers.filter((answer) => answer !== undefined);
  const owners = new Set(known.flatMap((answer) => ("backend" in answer ? [answer.backend] : [])));
  if (owners.size > 1) return `${next}, whose claim a death cut off, has ${owners.size} owners`;
  const newCount = known.filter(({ kind }) => kind === "new").length;
  if (newCount > 1 || (newCount === 1 && owners.has(agent.owner)))
    return `${next}, whose claim a death cut off, was told to be new to ${newCount} others`;
  return { recoveryMs };
}

/** A process ends, another one starts: the same ledger, with everything in it. */
export async function replicaRestart(stage: Stage): Promise<Outcome> {
  let count = 0;
  for (const place of stage.places) {
    const before = await stage.start(place);
    const { ledgerId } = await before.ask("open", { requireExisting: true });
    const ids = Array.from({ length: 8 }, () => stage.word());
    const { answers } = await before.ask("claim", { ids, body: BODY, owner: before.owner });
    const refused = answers.find(({ kind }) => kind !== "new");
    await before.ask("close");
    await before.close();
    if (refused !== undefined) return notTested(`a claim before the restart was answered ${refused.kind}`);
    const after = await stage.start(place);
    try {
      const reopened = await after.ask("open", { requireExisting: true });
      if (reopened.ledgerId !== ledgerId) return failed("after a restart there is another ledger");
      const again = (await after.ask("claim", { ids, body: BODY, owner: after.owner })).answers;
      const odd = again.find((answer) => answer.kind !== "existing" || answer.backend !== before.owner);
      if (odd !== undefined)
        return failed(
          `after a restart, a claimed id was answered ${odd.kind}${"backend" in odd ? ` with ${odd.backend}` : ""}`,
        );
      const other = (await after.ask("claim", { ids, body: "other bytes", owner: after.owner })).answers;
      if (other.some(({ kind }) => kind !== "conflict"))
        return failed("after a restart, other bytes for a claimed id were not refused");
      count += 1;
    } finally {
      await after.close();
    }
  }
  return passed(
    `${count === 1 ? "a process" : `${count} processes`} ended and came back: the same ledger, everything in it`,
  );
}

/** A process is frozen in the middle of claims, as a machine that hangs: the others stay right; thawed, it does, too. */
export async function freezeAndThaw(stage: Stage): Promise<Outcome> {
  let refusedCount = 0;
  for (const place of stage.places) {
    const victim = await stage.start(place);
    try {
      await victim.ask("open", { requireExisting: true });
      const word = stage.word();
      const ids = Array.from({ length: 64 }, (_, at) => `${word}-${at}`);
      const late = victim.ask("claim", { ids, body: BODY, owner: victim.owner });
      // Awaited below, unless something else breaks off first.
      late.catch(() => undefined);
      await delay(Math.random() * 4);
      victim.signal("freeze");
      const others = await Promise.all(
        stage.agents.map(
          async (agent) => (await agent.ask("claim", { ids, body: BODY, owner: agent.owner })).answers,
        ),
      );
      await delay(FROZEN_MS);
      victim.signal("thaw");
      const all = [...others, (await late).answers];
      for (const [at, id] of ids.entries()) {
        const ofId = all.map((each) => each[at]).filter((each) => each !== undefined);
        refusedCount += ofId.filter(({ kind }) => kind === "error").length;
        const wrong = wrongRace(id, ofId);
        if (wrong !== undefined) return failed(`while one process was frozen: ${wrong}`);
      }
    } finally {
      victim.signal("thaw");
      await victim.close();
    }
  }
  return passed(
    `a process was frozen in the middle of 64 claims, and thawed: one owner each${refusedCount === 0 ? "" : `; ${refusedCount} claims were refused meanwhile`}`,
  );
}

/** A process is frozen and then killed, as a machine that hangs and is switched off. */
export async function freezeAndKill(stage: Stage): Promise<Outcome> {
  let slowestMs = 0;
  for (const place of stage.places) {
    const victim = await beginClaims(stage, await stage.start(place));
    victim.agent.signal("freeze");
    await delay(FROZEN_MS);
    victim.agent.signal("kill");
    await victim.agent.close();
    const checked = await survive(stage, victim);
    if (typeof checked === "string") return failed(checked);
    slowestMs = Math.max(slowestMs, checked.recoveryMs);
  }
  return passed(
    `a process was frozen in the middle of claims and killed: nothing acknowledged was lost, the others claimed again within ${Math.round(slowestMs)} ms`,
  );
}
