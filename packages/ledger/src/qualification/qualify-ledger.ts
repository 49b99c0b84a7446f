/** Whether a place can hold a ledger: tried out with processes that race, die, freeze and come back. */
import { LedgerOptionError, LedgerUnsupportedError } from "../errors.ts";
import { type OpenLedgerOptions, parseLedgerUrl } from "../open-ledger.ts";
import type { AgentPlace } from "./agent-connection.ts";
import {
  failed,
  type LedgerCheck,
  type LedgerQualification,
  notTested,
  type Outcome,
  verdictOf,
} from "./check.ts";
import { claimsApart, claimsConflict, claimsRace, claimsSeen, openEverywhere } from "./claim-checks.ts";
import { freezeAndKill, freezeAndThaw, processDeath, replicaRestart } from "./death-checks.ts";
import { describeDirectory } from "./describe-directory.ts";
import {
  atomicity,
  fileSystem,
  newFileSeen,
  race,
  samePlace,
  syncs,
  timesCoherent,
  timesPrecise,
} from "./file-checks.ts";
import { fullDisk } from "./fill-check.ts";
import { lockExcludes, lockFreedByDeath, lockKeptByFrozen, lockKinds, lockOrders } from "./lock-checks.ts";
import { makeProbe, newProbe, otherProbes } from "./probe-place.ts";
import { Stage } from "./stage.ts";
import { adviceOf, untested } from "./untested.ts";

/** Options of {@link qualifyLedger}. */
export interface QualifyOptions {
  /** The machines that take part, this one first. */
  places: readonly [AgentPlace, ...AgentPlace[]];
  /** Agents on this machine; half as many, but at least one, on each other one. 2 to 16. @default 3 */
  agentCount?: number | undefined;
  /** Of a bucket. */
  bucket?: OpenLedgerOptions["bucket"];
  /** Of a directory: fill its disk if no more than so many bytes are free. Others on that disk are hit, too. @default not */
  fillBytes?: number | undefined;
  signal?: AbortSignal | undefined;
  /** Hears that a check begins. */
  onBegin?: (name: string) => void;
  /** Hears how it went. */
  onCheck?: (check: LedgerCheck) => void;
}

interface Planned {
  name: string;
  required: boolean;
  run: (stage: Stage) => Promise<Outcome>;
}

const always: readonly Planned[] = [
  { name: "same-ledger", required: true, run: openEverywhere },
  { name: "claims-race", required: true, run: claimsRace },
  { name: "claims-apart", required: true, run: claimsApart },
  { name: "claims-conflict", required: true, run: claimsConflict },
  { name: "claims-seen-at-once", required: true, run: claimsSeen },
  { name: "process-death", required: true, run: processDeath },
  { name: "replica-restart", required: true, run: replicaRestart },
  { name: "node-freeze", required: true, run: freezeAndThaw },
  { name: "node-freeze-and-kill", required: true, run: freezeAndKill },
];

const ofDirectories: readonly Planned[] = [
  { name: "fsync", required: true, run: syncs },
  { name: "create-exclusive-race", required: true, run: race("exclusive") },
  { name: "link-race", required: true, run: race("link") },
  { name: "link-atomic", required: true, run: atomicity("link") },
  { name: "rename-atomic", required: false, run: atomicity("rename") },
  { name: "new-file-seen-at-once", required: true, run: newFileSeen },
  { name: "times-coherent", required: false, run: timesCoherent },
  { name: "times-precise", required: false, run: timesPrecise },
  { name: "lock-excludes", required: true, run: lockExcludes },
  { name: "lock-orders", required: true, run: lockOrders },
  { name: "lock-freed-by-death", required: true, run: lockFreedByDeath },
  { name: "lock-kept-by-frozen", required: true, run: lockKeptByFrozen },
  { name: "lock-kinds", required: false, run: lockKinds },
];

/**
 * Tries a place out, in a probe of its own beside the ledger, whose records it never touches; the probe is removed at the
 * end. Takes some ten seconds, more with more machines.
 * @param url as for `openLedger`
 * @throws LedgerOptionError (CELLKIT_LEDGER_OPTION), LedgerAgentError (CELLKIT_LEDGER_AGENT) when no agent can be started,
 *   the reason of the signal, and what the store throws when not even a probe can be made
 */
export async function qualifyLedger(url: string, options: QualifyOptions): Promise<LedgerQualification> {
  const { places, agentCount = 3, bucket, fillBytes, signal } = options;
  const location = parseLedgerUrl(url);
  if (!(Number.isInteger(agentCount) && agentCount >= 2 && agentCount <= 16))
    throw new LedgerOptionError(`agentCount is 2 to 16, not ${agentCount}`);
  const stage = new Stage({ url, probe: newProbe(), bucket, places, signal });
  const checks: LedgerCheck[] = [];
  const counts = new Map(
    places.map((place, at) => [place, at === 0 ? agentCount : Math.max(1, Math.floor(agentCount / 2))]),
  );
  const keep = (check: LedgerCheck): LedgerCheck => {
    checks.push(check);
    options.onCheck?.(check);
    return check;
  };
  const run = async ({ name, required, run: check }: Planned): Promise<LedgerCheck> => {
    signal?.throwIfAborted();
    options.onBegin?.(name);
    const began = performance.now();
    const outcome = await attempt(stage, counts, check);
    signal?.throwIfAborted();
    return keep({ name, ...outcome, ms: Math.round(performance.now() - began), required });
  };
  let remains: string | undefined;
  const others = location.kind === "posix" ? await otherProbes(location.directory) : [];
  let removeProbe: () => Promise<void>;
  try {
    removeProbe = await makeProbe(url, stage.probe, { bucket });
  } catch (error) {
    // The store itself says that it cannot: nothing has to be tried out.
    if (!(error instanceof LedgerUnsupportedError)) throw error;
    keep({ name: "settings", ...failed(error.message), ms: 0, required: true });
    return { url: withoutSecrets(url), verdict: "violated", checks, advice: [] };
  }
  try {
    // Without one agent nothing can be told at all.
    await stage.refill(counts);
    if (location.kind === "posix") {
      const same = await run({ name: "same-place", required: true, run: samePlace });
      const lasting = await run({ name: "file-system", required: true, run: onItsMount(location.directory) });
      if (same.result === "passed" && lasting.result === "passed") {
        for (const planned of [...ofDirectories, ...always]) await run(planned);
        await run({ name: "full-disk", required: false, run: fullDisk(location.directory, fillBytes) });
      }
    } else for (const planned of always) await run(planned);
    for (const told of untested({
      kind: location.kind,
      machines: stage.machines,
      fileSystem: stage.fileSystem,
    }))
      keep({ ...told, ms: 0 });
  } finally {
    await stage.close();
    remains = await removeProbe().then(() => undefined, messageOf);
  }
  const advice = adviceOf(checks);
  for (const other of others)
    advice.push(
      `${other} is of another qualification: if none is under way, it was killed, and what it left may be removed`,
    );
  if (remains !== undefined)
    advice.push(`${stage.probe} could not be removed (${remains}): remove it by hand`);
  return { url: withoutSecrets(url), verdict: verdictOf(checks), checks, advice };
}

/** The file system with the place where it is mounted: where a mount is missing, it is another one. */
function onItsMount(directory: string): Planned["run"] {
  return async (stage) => {
    const { result, detail } = await fileSystem(stage);
    const place = await describeDirectory(directory);
    return {
      result,
      detail: place?.mountPoint === undefined ? detail : `${detail}; mounted at ${place.mountPoint}`,
    };
  };
}

/** A check that breaks off proves nothing either way; the next one has other agents. */
async function attempt(
  stage: Stage,
  counts: Parameters<Stage["refill"]>[0],
  check: Planned["run"],
): Promise<Outcome> {
  try {
    if (stage.agents.length === 0 || stage.agents.some(({ isAlive }) => !isAlive)) {
      await stage.refill(counts);
      await openEverywhere(stage);
    }
    return await check(stage);
  } catch (error) {
    // Whatever they hold or are in the middle of goes with them.
    await stage.close();
    return notTested(`it broke off: ${messageOf(error)}`);
  }
}

/** An address without what must not be shown. */
function withoutSecrets(url: string): string {
  const location = parseLedgerUrl(url);
  if (location.kind !== "postgres") return url;
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  return parsed === undefined ? "postgresql://…" : `postgresql://${parsed.host}${parsed.pathname}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
