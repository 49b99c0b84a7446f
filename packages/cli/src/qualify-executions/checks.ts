// The acceptance list, a function each. A check that what it needs was not given for is not run.
import { ExecutionError, type TerminalRecord } from "@cellkit/execution";
import { ambiguous, codeOf, endOf, lost, refusalOf, settle, unanswered } from "./ends.ts";
import { type CheckOutcome, failed, notShown, passed } from "./outcome.ts";
import { type HookName, isSameRecord, type PlaneUnderTest } from "./plane.ts";
import { watchRouter, witnessRotation, witnessVersions } from "./witness.ts";

/** One line of the list. */
export interface ExecutionCheck {
  readonly name: string;
  readonly needs: readonly (HookName | "long-request")[];
  run(plane: PlaneUnderTest): Promise<CheckOutcome>;
}

/** Submissions that are under way when a replica is killed. */
const replicaLossCount = 12;

/** The order matters: what breaks the plane for a while comes after what needs it whole. */
export const executionChecks: readonly ExecutionCheck[] = [
  { name: "two-dispatchers", needs: [], run: twoDispatchers },
  { name: "submission", needs: [], run: submission },
  { name: "timeout", needs: ["long-request"], run: timeout },
  { name: "cancellation", needs: ["long-request"], run: cancellation },
  { name: "ambiguous-acceptance", needs: ["lose-answers", "restore-answers"], run: ambiguousAcceptance },
  { name: "replica-loss", needs: ["kill-replica", "start-replica"], run: replicaLoss },
  { name: "node-loss", needs: ["long-request", "kill-node", "start-node"], run: nodeLoss },
  { name: "rotation", needs: ["rotate"], run: (plane) => continuity(plane, "rotation", "rotate") },
  { name: "upgrade", needs: ["upgrade"], run: (plane) => continuity(plane, "upgrade", "upgrade") },
  { name: "rollback", needs: ["rollback"], run: (plane) => continuity(plane, "rollback", "rollback") },
  { name: "at-most-once", needs: [], run: atMostOnce },
];

/** Two nodes, each of which runs what is pinned to it. */
async function twoDispatchers(plane: PlaneUnderTest): Promise<CheckOutcome> {
  const nodes = new Map<string, string>();
  for (const origin of plane.options.backends) {
    const look = await plane.look(origin);
    const names = [...new Set(look.nodes.map(({ node_name }) => node_name))];
    const [name] = names;
    if (names.length > 1) return failed(`different nodes answer at ${origin}: ${names.join(", ")}`);
    if (name === undefined || !look.healthy || look.binaryVersion === undefined)
      return failed(`${origin} is not eligible: it takes no new work, or gives no compatible report`);
    nodes.set(origin, name);
  }
  if (new Set(nodes.values()).size < 2)
    return failed(`fewer than two nodes: ${[...nodes.values()].join(", ")}`);
  for (const [pin, name] of nodes) {
    const record = await plane.finish(plane.prepare("two-dispatchers", { pin }));
    if (record.phase !== "Succeeded")
      return failed(`${record.requestId} on ${name} ended ${record.phase}: ${record.reason ?? "no reason"}`);
    if (record.receipt?.node !== name)
      return failed(
        `${record.requestId} was pinned to ${name}, and its receipt is of ${record.receipt?.node}`,
      );
  }
  return passed(`each of ${[...nodes.values()].join(", ")} ran what was pinned to it`);
}

/** Submitted, run, read; repeated, which is a read; with other bytes, which is refused. */
async function submission(plane: PlaneUnderTest): Promise<CheckOutcome> {
  const work = plane.prepare("submission");
  const record = await plane.finish(work);
  if (record.phase !== "Succeeded")
    return failed(`it ended ${record.phase}: ${record.reason ?? "no reason"}`);
  const { signal } = plane.options;
  const again = await work.send({ signal });
  if (!isSameRecord(again, record)) return failed("the same bytes again had another record");
  const other = plane.options.client.prepare(Buffer.concat([work.bytes, Buffer.from("\n")]), {});
  const conflict = await refusalOf(() => other.send({ signal }));
  if (conflict !== "CELLKIT_EXECUTION_ID_CONFLICT")
    return failed(`other bytes under the same id had ${conflict ?? "a record"} and not a conflict`);
  const audit = await work.audit({ signal });
  const { having } = await plane.holders(work.id);
  const stranger = plane.strangerOf(record);
  if (having.length === 0 && stranger !== undefined)
    return notShown(
      `${stranger} ran it, and is none of the dispatchers that were given: give each by --backend`,
    );
  if (having.length !== 1) return failed(`${having.length} dispatchers have it`);
  return passed(
    `one dispatcher has it, the repeat was a read, other bytes were refused, ${audit.events.length} events of audit`,
  );
}

/** Work that may take less time than it needs ends failed, and not later than it may. */
async function timeout(plane: PlaneUnderTest): Promise<CheckOutcome> {
  const { shortTimeoutMs } = plane.options;
  const record = await plane.finish(plane.prepare("timeout", { long: true, timeoutMs: shortTimeoutMs }));
  return record.phase === "Failed"
    ? passed(`it ended Failed: ${record.reason ?? "no reason"}`)
    : failed(`it was allowed ${shortTimeoutMs} ms and ended ${record.phase}`);
}

/** A run that is cancelled ends Cancelled, stays so, and is not run by a repeat. */
async function cancellation(plane: PlaneUnderTest): Promise<CheckOutcome> {
  const { signal, client } = plane.options;
  const work = plane.prepare("cancellation", { long: true });
  await work.send({ signal });
  const end = await work.cancelUntilTerminal({ signal });
  if (end.kind !== "terminal") return failed("a submitted run was not known");
  plane.keep(end.record);
  if (end.record.phase !== "Cancelled") return failed(`it ended ${end.record.phase}`);
  const again = await work.cancelUntilTerminal({ signal });
  if (again.kind !== "terminal" || !isSameRecord(again.record, end.record))
    return failed("a second cancellation had another record");
  if (!isSameRecord(await work.send({ signal }), end.record))
    return failed("the same bytes again had another record");
  const never = await client.cancelUntilTerminal(plane.prepare("cancellation").id, { signal });
  if (never.kind !== "never-submitted") return failed("an id that was never submitted was cancelled");
  return passed("Cancelled, the same when cancelled and submitted again; an unknown id was told as unknown");
}

/** The answer to a submission is lost. Nobody knows, nobody sends it again, and the owner has it in the end. */
async function ambiguousAcceptance(plane: PlaneUnderTest): Promise<CheckOutcome> {
  const { ambiguousMs, signal } = plane.options;
  const work = plane.prepare("ambiguous-acceptance", { pin: plane.victim });
  const doubt = await plane.restoring("restore-answers", async () => {
    await plane.hook("lose-answers");
    try {
      await work.send({ signal, timeoutMs: ambiguousMs });
      return undefined;
    } catch (error) {
      if (!(error instanceof ExecutionError)) throw error;
      return error;
    }
  });
  if (doubt === undefined) return notShown("the submission was answered: the command lost no answers");
  if (doubt.sent === "no")
    return notShown(`nothing was sent (${codeOf(doubt)}): the command stopped more than answers`);
  const isBack = await plane.comes(async () => (await plane.look(plane.victim)).health.status !== undefined);
  if (!isBack) return failed(`${plane.victim} did not come back`);
  const settled = await settle(plane, work);
  const { having } = await plane.holders(work.id);
  if (having.some((origin) => origin !== plane.victim)) return failed(`${having.join(", ")} have it`);
  const told = `told as ${codeOf(doubt)}, sent ${doubt.sent}`;
  if (typeof settled !== "string") return passed(`${told}; the owner alone has it, ${settled.phase}`);
  return having.length === 0
    ? passed(`${told}; it never arrived, and stays with its owner (${settled})`)
    : failed(`${told}; the owner has it, and the router says ${settled}`);
}

/** A replica dies in the middle of submissions. Each ends once, or somebody is told that it may have run. */
async function replicaLoss(plane: PlaneUnderTest): Promise<CheckOutcome> {
  const watch = await watchRouter(plane);
  const works = Array.from({ length: replicaLossCount }, () => plane.prepare("replica-loss"));
  const ends = Promise.all(works.map((work) => settle(plane, work)));
  // The promise is looked at once the hook is done.
  ends.catch(() => undefined);
  let settled: readonly (TerminalRecord | string)[];
  try {
    settled = await plane.restoring("start-replica", async () => {
      await plane.hook("kill-replica");
      return ends;
    });
  } finally {
    await watch.end();
  }
  const records = settled.filter((each) => typeof each !== "string");
  const doubts = settled.filter((each) => typeof each === "string");
  const other = doubts.find((code) => !ambiguous.includes(code));
  if (other !== undefined)
    return failed(
      `a submission ended with ${other}${unanswered.includes(other) ? ": nobody stood in for the replica, so is there a second one behind --router?" : ""}`,
    );
  const after = await plane.finish(plane.prepare("replica-loss"));
  if (after.phase !== "Succeeded") return failed(`a submission after the restart ended ${after.phase}`);
  if (records.length === 0) return failed("no submission survived: is there a second replica?");
  const twice = await ranTwice(
    plane,
    works.map(({ id }) => id),
  );
  if (twice !== undefined) return failed(twice);
  const ended = `${records.length} of ${works.length} ended, ${doubts.length} stay ambiguous for an operator`;
  return (
    watch.problem() ?? passed(`${ended}; ${watch.missedCount} connections to the router were cut or refused`)
  );
}

/** A node dies with a run. The run stays with it; new work goes elsewhere. */
async function nodeLoss(plane: PlaneUnderTest): Promise<CheckOutcome> {
  const { signal, ambiguousMs } = plane.options;
  const work = plane.prepare("node-loss", { long: true, pin: plane.victim });
  await work.send({ signal });
  const problem = await plane.restoring("start-node", async () => {
    await plane.hook("kill-node");
    const isTold = await plane.comes(async () =>
      lost.includes((await refusalOf(() => work.get({ signal }))) ?? ""),
    );
    if (!isTold) return failed("the router did not tell that the owner is lost");
    const again = await refusalOf(() => work.send({ signal, timeoutMs: ambiguousMs }));
    if (again === undefined) return failed("the same bytes again had a record, though their owner is gone");
    const elsewhere = plane.prepare("node-loss");
    const record = await plane.finish(elsewhere);
    if (record.phase !== "Succeeded") return failed(`new work ended ${record.phase}`);
    const moved = (await plane.holders(work.id)).having;
    return moved.length > 0 ? failed(`${moved.join(", ")} have the run of the node that is gone`) : undefined;
  });
  if (problem !== undefined) return problem;
  const isBack = await plane.comes(async () => (await plane.look(plane.victim)).healthy);
  if (!isBack) return failed(`${plane.victim} did not come back`);
  const { having } = await plane.holders(work.id);
  const strangers = having.filter((origin) => origin !== plane.victim);
  if (strangers.length > 0) return failed(`${strangers.join(", ")} have the run of the node that came back`);
  const now = (await refusalOf(() => work.get({ signal }))) ?? "a record";
  return passed(
    `the run stayed with its owner, new work ran elsewhere; after its return the owner says ${now}`,
  );
}

/** What was before is found as it was after a change that was seen, and new work runs. */
async function continuity(plane: PlaneUnderTest, check: string, hook: HookName): Promise<CheckOutcome> {
  const { signal, longRequest } = plane.options;
  const witness = await (hook === "rotate" ? witnessRotation(plane) : witnessVersions(plane, hook));
  const works = await Promise.all([1, 2, 3].map(() => plane.prepare(check)));
  const before = await Promise.all(works.map((work) => plane.finish(work)));
  const active = longRequest === undefined ? undefined : plane.prepare(check, { long: true });
  await active?.send({ signal });
  await plane.hook(hook);
  const late = plane.prepare(check);
  const isServing = await plane.comes(async () => typeof (await settle(plane, late)) !== "string");
  if (!isServing) return failed(`no new work ran after the ${check}`);
  for (const origin of plane.options.backends) await plane.look(origin);
  for (const [index, work] of works.entries()) {
    if (!isSameRecord(await work.get({ signal }), before[index]))
      return failed(`${work.id} has another record`);
    if (!isSameRecord(await work.send({ signal }), before[index])) return failed(`${work.id} was not a read`);
  }
  const end = active === undefined ? "no long request was given" : await endOf(plane, active);
  if (lost.includes(end)) return failed(`the run that was active is lost: ${end}`);
  const twice = await ranTwice(
    plane,
    [...works, ...(active === undefined ? [] : [active])].map(({ id }) => id),
  );
  if (twice !== undefined) return failed(twice);
  return (
    (await witness()) ??
    passed(`${works.length} runs have the records that they had, new work ran; what was active: ${end}`)
  );
}

/** Over everything that this command submitted. */
async function atMostOnce(plane: PlaneUnderTest): Promise<CheckOutcome> {
  const silent = new Set<string>();
  for (const { id } of plane.executions) {
    const found = await plane.holders(id);
    if (found.having.length > 1) return failed(`${id} is known to ${found.having.join(" and ")}`);
    for (const origin of found.silent) silent.add(origin);
  }
  // Whoever ran one of them, and was not asked, may have run another one as well.
  const hidden = plane.executions.filter(({ phase, holders }) => phase !== undefined && holders.length === 0);
  if (hidden.length > 0)
    return notShown(
      `${hidden.length} of ${plane.executions.length} ids ran at none of the dispatchers that were given, such as ${hidden[0]?.id} on ${hidden[0]?.node ?? "a node that is not told"}: give each by --backend`,
    );
  return silent.size > 0
    ? notShown(`${[...silent].join(", ")} could not be asked of all`)
    : passed(`none of ${plane.executions.length} ids is known to more than one dispatcher`);
}

async function ranTwice(plane: PlaneUnderTest, ids: readonly string[]): Promise<string | undefined> {
  for (const id of ids) {
    const { having } = await plane.holders(id);
    if (having.length > 1) return `${id} is known to ${having.join(" and ")}`;
  }
  return undefined;
}
