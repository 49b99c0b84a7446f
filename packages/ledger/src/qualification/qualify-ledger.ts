/** Whether a place can hold a ledger: tried out with processes that race, die, freeze and come back. */
import { LedgerOptionError } from "../errors.ts";
import { type OpenLedgerOptions, parseLedgerUrl } from "../open-ledger.ts";
import type { AgentPlace } from "./agent-connection.ts";
import { type LedgerCheck, type LedgerQualification, notTested, type Outcome, verdictOf } from "./check.ts";
import { claimsApart, claimsConflict, claimsRace, claimsSeen, openEverywhere } from "./claim-checks.ts";
import { freezeAndKill, freezeAndThaw, processDeath, replicaRestart } from "./death-checks.ts";
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
import { makeProbe, newProbe } from "./probe-place.ts";
import { Stage } from "./stage.ts";

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
  const run = async ({ name, required, run: check }: Planned): Promise<LedgerCheck> => {
    signal?.throwIfAborted();
    options.onBegin?.(name);
    const began = performance.now();
    const outcome = await attempt(stage, counts, check);
    signal?.throwIfAborted();
    const done = { name, ...outcome, ms: Math.round(performance.now() - began), required };
    checks.push(done);
    options.onCheck?.(done);
    return done;
  };
  const removeProbe = await makeProbe(url, stage.probe, { bucket });
  try {
    // Without one agent nothing can be told at all.
    await stage.refill(counts);
    if (location.kind === "posix") {
      const same = await run({ name: "same-place", required: true, run: samePlace });
      const lasting = await run({ name: "file-system", required: true, run: fileSystem });
      if (same.result === "passed" && lasting.result === "passed") {
        for (const planned of [...ofDirectories, ...always]) await run(planned);
        await run({ name: "full-disk", required: false, run: fullDisk(location.directory, fillBytes) });
      }
    } else for (const planned of always) await run(planned);
    for (const planned of untestable(location.kind, stage)) await run(planned);
  } finally {
    await stage.close();
    await removeProbe();
  }
  return { url: told(url), verdict: verdictOf(checks), checks, advice: adviceOf(location.kind, checks) };
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
    return notTested(`it broke off: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** What no program shows by itself. The verdict does not rest on it, but for a shared disk that only one machine was seen on. */
function untestable(kind: "posix" | "bucket" | "postgres", { places, fileSystem: found }: Stage): Planned[] {
  const say = (name: string, detail: string, required = false): Planned => ({
    name,
    required,
    run: async () => notTested(detail),
  });
  const alone =
    places.length > 1
      ? []
      : kind === "posix" && found?.kind === "shared"
        ? [
            say(
              "several-machines",
              `${found.name} may be shared, and only this machine took part: start --agent --listen on another one, and give it as --peer`,
              true,
            ),
          ]
        : [say("several-machines", "only this machine took part")];
  const power = {
    posix:
      "whether fsync reaches the disk shows only when its power is cut, which a program (and a laptop with a battery) cannot do: pull the plug of a test machine during claims, then run `cellkit ledger verify`",
    bucket: "what the store keeps when its own machines lose power is for its maker to say",
    postgres:
      "what the server keeps when it loses power depends on its disk and on fsync: cut the power of a test server during claims",
  };
  return [
    ...alone,
    say("power-loss", power[kind]),
    say(
      "network-partition",
      "cutting one machine off from the store while it holds the lock or claims needs the network's help",
    ),
    ...(kind === "posix"
      ? []
      : [
          say(
            "failover",
            "a failover of the store itself was not caused: cause one during claims, and see that nothing acknowledged is lost",
          ),
        ]),
  ];
}

function adviceOf(kind: "posix" | "bucket" | "postgres", checks: readonly LedgerCheck[]): string[] {
  if (kind !== "posix") return [];
  const resultOf = (name: string) => checks.find((check) => check.name === name)?.result;
  const times = resultOf("times-coherent");
  if (times === undefined) return [];
  const several = checks.every(({ name }) => name !== "several-machines");
  if (times === "failed")
    return [
      "times of directories are cached: leave trustDirectoryTimes off, every new claim counts the records then",
    ];
  return several && times === "passed"
    ? [
        "times of directories are coherent between these machines: trustDirectoryTimes may be set, claims need not count the records then",
      ]
    : [
        "times of directories are coherent on this machine; whether trustDirectoryTimes may be set for a shared disk shows only with --peer",
      ];
}

/** An address without what must not be shown. */
function told(url: string): string {
  const location = parseLedgerUrl(url);
  if (location.kind !== "postgres") return url;
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  return parsed === undefined ? "postgresql://…" : `postgresql://${parsed.host}${parsed.pathname}`;
}
