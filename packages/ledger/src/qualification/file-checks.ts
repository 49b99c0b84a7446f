/** What the files of a directory must show: one winner for each name, whole contents, real fsync calls, seen by others at once. */
import { setTimeout as delay } from "node:timers/promises";
import { failed, notTested, type Outcome, passed } from "./check.ts";
import type { Stage } from "./stage.ts";

const RACE_COUNT = 100;
const PUBLISH_COUNT = 60;
const SEEN_COUNT = 12;
const TIMES_COUNT = 60;

/** Longer than the tick by which file systems count their time. */
const TICK_MS = 15;

/** How long a view that is late is waited for, to tell how late it is. */
const LATE_MS = 5_000;

/** The probe was made by this machine: one that does not find it has another directory behind the same path. */
export async function samePlace(stage: Stage): Promise<Outcome> {
  return stage.blind.size === 0
    ? passed(`${stage.agents.length} processes see the same directory`)
    : failed(
        `what this machine made is not there for ${[...stage.blind].join(", ")}: each has a directory of its own, so that every id could be claimed once by each`,
      );
}

/** Refuses what forgets. */
export async function fileSystem(stage: Stage): Promise<Outcome> {
  const found = stage.fileSystem;
  if (found === undefined) return notTested("no agent told which file system it is");
  switch (found.kind) {
    case "memory":
      return failed(
        `${found.name} keeps files in memory: they are gone with the machine, and every id would be new again`,
      );
    case "local":
      return passed(
        found.name === "overlayfs"
          ? "overlayfs: durable only if the directory is no layer of a container that is thrown away"
          : `${found.name}, of this machine alone`,
      );
    case "shared":
      return passed(`${found.name}, which other machines may share`);
  }
}

/** fsync of files, of the directory, and of all directories above it, on each machine. */
export async function syncs(stage: Stage): Promise<Outcome> {
  let fileMs = 0;
  let directoryMs = 0;
  for (const agent of stage.agents) {
    const answer = await agent.ask("sync");
    if (answer.problem !== undefined) return failed(`${agent.name}: ${answer.problem}`);
    fileMs = Math.max(fileMs, answer.fileMs);
    directoryMs = Math.max(directoryMs, answer.directoryMs);
  }
  return passed(
    `files in ${fileMs.toFixed(1)} ms, directories in ${directoryMs.toFixed(1)} ms at most, and every directory above`,
  );
}

/** Many names, each tried by all: one winner each. */
export function race(how: "exclusive" | "link"): (stage: Stage) => Promise<Outcome> {
  return async (stage) => {
    const request = { prefix: stage.word(), count: RACE_COUNT, how, partyCount: stage.agents.length };
    const results = await Promise.all(stage.agents.map((agent) => agent.ask("race", request)));
    const winners = new Map<number, number>();
    for (const { won } of results) for (const at of won) winners.set(at, (winners.get(at) ?? 0) + 1);
    const doubleCount = [...winners.values()].filter((count) => count > 1).length;
    if (doubleCount > 0) return failed(`${doubleCount} of ${RACE_COUNT} names had more than one winner`);
    if (winners.size < RACE_COUNT)
      return failed(`${RACE_COUNT - winners.size} of ${RACE_COUNT} names had no winner`);
    const takenPart = results.filter(({ won }) => won.length > 0).length;
    return passed(
      `${RACE_COUNT} names had one winner each, ${takenPart} of ${results.length} processes among them`,
    );
  };
}

/** One publishes, another one reads without a pause: everything it sees is whole. */
export function atomicity(how: "rename" | "link"): (stage: Stage) => Promise<Outcome> {
  return async (stage) => {
    let readCount = 0;
    for (const [writer, reader] of stage.pairs(2)) {
      const prefix = stage.word();
      const [seen] = await Promise.all([
        reader.ask("watch", { prefix, count: PUBLISH_COUNT, how }),
        writer.ask("publish", { prefix, count: PUBLISH_COUNT, how }),
      ]);
      readCount += seen.readCount;
      if (seen.tornCount > 0)
        return failed(`${reader.name} read ${seen.tornCount} contents that were not whole`);
      if (seen.missingCount > 0)
        return failed(
          `${reader.name} found nothing ${seen.missingCount} times while the name was being replaced`,
        );
    }
    return readCount === 0
      ? notTested("it takes two agents")
      : passed(`${readCount} reads during ${PUBLISH_COUNT} publications each saw whole contents`);
  };
}

/** A file that another process looked for before, in vain, is there for it as soon as it is made. */
export async function newFileSeen(stage: Stage): Promise<Outcome> {
  let lateMs = 0;
  let count = 0;
  for (let round = 0; round < SEEN_COUNT; round++)
    for (const [writer, reader] of stage.pairs(1 + (round % 4)).slice(-1)) {
      const name = stage.word();
      if ((await reader.ask("get", { name })).text !== null)
        return failed("a file was there before it was made");
      await writer.ask("put", { name, text: "there" });
      const madeAt = performance.now();
      while ((await reader.ask("get", { name })).text !== "there") {
        lateMs = Math.max(lateMs, performance.now() - madeAt);
        if (lateMs > LATE_MS)
          return failed(`${reader.name} did not see a new file of ${writer.name} for ${LATE_MS} ms`);
        await delay(10);
      }
      count += 1;
    }
  if (count === 0) return notTested("it takes two agents");
  return lateMs === 0
    ? passed(`${count} new files were seen by another process at once`)
    : failed(
        `new files were seen by another process only after up to ${Math.round(lateMs)} ms: names that are absent are cached; mount with lookupcache=positive or none`,
      );
}

/** Whether others see at once that a directory and a file changed. If not, counts must not rest on times. */
export async function timesCoherent(stage: Stage): Promise<Outcome> {
  let staleCount = 0;
  let count = 0;
  let problem = "";
  for (let round = 0; round < SEEN_COUNT; round++)
    for (const [writer, reader] of stage.pairs(1 + (round % 4)).slice(-1)) {
      const name = stage.word();
      await writer.ask("put", { name, text: "1" });
      const before = await reader.ask("look", { name });
      const other = stage.word();
      await delay(TICK_MS);
      await writer.ask("put", { name, text: "22" });
      await writer.ask("put", { name: other, text: "" });
      const after = await reader.ask("look", { name });
      const { listed } = await reader.ask("look", { name: other });
      count += 1;
      const stale = [
        ...(after.directoryMtimeNs === before.directoryMtimeNs ? ["the directory's time"] : []),
        ...(after.mtimeNs === before.mtimeNs ? ["a file's time"] : []),
        ...(after.sizeBytes !== 2 ? ["a file's size"] : []),
        ...(listed ? [] : ["the directory's entries"]),
      ];
      if (stale.length === 0) continue;
      staleCount += 1;
      problem = `${reader.name} saw ${stale.join(", ")} as before a change of ${writer.name}`;
    }
  if (count === 0) return notTested("it takes two agents");
  return staleCount === 0
    ? passed(`${count} changes of files and directories were seen by another process at once`)
    : failed(`${staleCount} of ${count} changes were not seen at once: ${problem}`);
}

/** How fine the times of files are, whether they go forwards, and how far they are from the machines' clocks. */
export async function timesPrecise(stage: Stage): Promise<Outcome> {
  let stepNs = Number.POSITIVE_INFINITY;
  let backwardsCount = 0;
  let skewMs = 0;
  for (const agent of stage.agents) {
    const answer = await agent.ask("times", { prefix: stage.word(), count: TIMES_COUNT });
    const times = answer.mtimesNs.map(BigInt);
    for (const [at, time] of times.entries()) {
      const step = time - (times[at - 1] ?? time);
      if (step < 0n) backwardsCount += 1;
      if (step > 0n) stepNs = Math.min(stepNs, Number(step));
    }
    if (Math.abs(answer.skewMs) > Math.abs(skewMs)) skewMs = answer.skewMs;
  }
  const step = Number.isFinite(stepNs) ? `${(stepNs / 1e6).toFixed(3)} ms` : "more than the whole check took";
  const detail = `the smallest step of a file's time was ${step}, at most ${Math.abs(skewMs).toFixed(0)} ms from its machine's clock; clocks of machines differ by at least ${stage.clockSkewMs.toFixed(0)} ms`;
  return backwardsCount === 0
    ? passed(detail)
    : failed(`times went backwards ${backwardsCount} times; ${detail}`);
}
