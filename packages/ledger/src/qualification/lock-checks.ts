/** What the lock of a directory must show: one holder at a time, on whatever machine, and freed when the holder dies. */
import { setTimeout as delay } from "node:timers/promises";
import { failed, notTested, type Outcome, passed } from "./check.ts";
import type { Stage } from "./stage.ts";

/** How often each agent counts under the lock. */
const INCREMENT_COUNT = 25;

/** How long a lock may stay taken after its holder's process died, whose machine lives: its kernel gives it back. */
const FREED_MS = 20_000;

const FROZEN_MS = 300;

const CONTENT = "written under the lock";

/** Held by one, refused to all others; given back, it can be had. Each agent is the holder once. */
export async function lockExcludes(stage: Stage): Promise<Outcome> {
  let count = 0;
  for (const holder of stage.agents) {
    const { kind } = await holder.ask("lock", { waitMs: 2_000 });
    if (kind === "busy") return failed(`${holder.name} could not take a lock that nobody held`);
    try {
      for (const other of stage.agents) {
        if (other === holder) continue;
        const answer = await other.ask("contend");
        if (answer.kind === "free") return failed(`${other.name} took the lock while ${holder.name} held it`);
        count += 1;
      }
    } finally {
      await holder.ask("unlock");
    }
    for (const other of stage.agents)
      if ((await other.ask("contend")).kind === "busy")
        return failed(`${other.name} found the lock taken after ${holder.name} had given it back`);
  }
  return passed(`a held lock was refused to others ${count} times, and free again afterwards`);
}

/** All count in one file under the lock: nothing is lost, and nobody is inside together with somebody else. */
export async function lockOrders(stage: Stage): Promise<Outcome> {
  const [first] = stage.agents;
  if (first === undefined) return notTested("no agent");
  await first.ask("put", { name: "counter", text: "0" });
  const results = await Promise.all(
    stage.agents.map((agent) => agent.ask("increment", { count: INCREMENT_COUNT })),
  );
  const overlapCount = results.reduce((sum, each) => sum + each.overlapCount, 0);
  const expected = stage.agents.length * INCREMENT_COUNT;
  const { text } = await first.ask("get", { name: "counter" });
  if (overlapCount > 0)
    return failed(`${overlapCount} of ${expected} times, two processes held the lock together`);
  if (Number(text) !== expected)
    return failed(
      `${expected} increments under the lock left ${text}: what one wrote, the next one did not see`,
    );
  return passed(`${stage.agents.length} processes counted to ${expected} under the lock`);
}

/** kill -9 of the holder: the next one gets the lock, and finds what the dead one had written. */
export async function lockFreedByDeath(stage: Stage): Promise<Outcome> {
  const [waiter] = stage.agents;
  if (waiter === undefined) return notTested("no agent");
  let slowestMs = 0;
  for (const place of stage.places) {
    const holder = await stage.start(place);
    const name = stage.word();
    try {
      await holder.ask("lock", { waitMs: 5_000 });
      await holder.ask("put", { name, text: CONTENT });
      if ((await waiter.ask("contend")).kind === "free")
        return failed("the lock was not held before its holder was killed");
      const killedAt = performance.now();
      holder.signal("kill");
      const { kind } = await waiter.ask("lock", { waitMs: FREED_MS });
      const freedMs = performance.now() - killedAt;
      if (kind === "busy")
        return failed(
          `the lock was still taken ${Math.round(freedMs / 1_000)} s after its holder on ${place.name} was killed`,
        );
      slowestMs = Math.max(slowestMs, freedMs);
      const { text } = await waiter.ask("get", { name });
      await waiter.ask("unlock");
      if (text !== CONTENT) return failed("what the dead holder had written is not there for the next one");
    } finally {
      await holder.close();
    }
  }
  return passed(`the lock was free at most ${Math.round(slowestMs)} ms after its holder was killed`);
}

/** A frozen holder keeps the lock: one that is taken away from it would have two holders when it goes on. */
export async function lockKeptByFrozen(stage: Stage): Promise<Outcome> {
  const [waiter] = stage.agents;
  if (waiter === undefined) return notTested("no agent");
  for (const place of stage.places) {
    const holder = await stage.start(place);
    try {
      await holder.ask("lock", { waitMs: 5_000 });
      holder.signal("freeze");
      await delay(FROZEN_MS);
      if ((await waiter.ask("contend")).kind === "free")
        return failed(`${waiter.name} took the lock from a holder that was frozen for ${FROZEN_MS} ms`);
      holder.signal("thaw");
      await holder.ask("unlock");
      if ((await waiter.ask("contend")).kind === "busy")
        return failed("the lock stayed taken after a thawed holder had given it back");
    } finally {
      holder.signal("thaw");
      await holder.close();
    }
  }
  return passed(
    `a holder that was frozen for ${FROZEN_MS} ms kept the lock, and gave it back when it was thawed`,
  );
}

/** Whether flock and fcntl see each other. Nothing rests on it, but whoever mixes programs wants to know. */
export async function lockKinds(stage: Stage): Promise<Outcome> {
  const [[holder, other] = []] = stage.pairs(1);
  if (holder === undefined || other === undefined) return notTested("it takes two agents");
  await holder.ask("lock", { waitMs: 5_000 });
  try {
    const { kind } = await other.ask("contendFcntl");
    return passed(
      kind === "busy"
        ? "flock and fcntl locks exclude each other here: flock is emulated, as NFS clients do it"
        : "flock and fcntl locks do not see each other here, as on a local file system: a program that locks with fcntl is not kept out",
    );
  } finally {
    await holder.ask("unlock");
  }
}
