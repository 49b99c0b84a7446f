// Whether the replicas that run have the same list and tokens as this configuration. Their notes are read, and none is written.
import { createHash } from "node:crypto";
import type { LedgerReader } from "@cellkit/ledger";
import type { RouterConfig } from "../config.ts";
import type { Credentials } from "../core/credentials.ts";
import {
  type Fingerprint,
  type Mismatch,
  mismatchesOf,
  parseFingerprint,
} from "../fingerprint/fingerprint.ts";
import { openNotes } from "../fingerprint/open-notes.ts";
import type { ReplicaNotes } from "../fingerprint/replica-notes.ts";
import { TokenGenerations } from "../fingerprint/token-generation.ts";
import { bucketOptions, ledgerAddress } from "../router-ledger.ts";
import { replicaList } from "../wiring.ts";
import type { CheckResult } from "./check-result.ts";

/** A note that was not renewed for so long is of a replica that is gone. */
const lifeMs = 120_000;

/** @param credentials undefined: they cannot be used, and only lists are compared */
export async function checkReplicas(
  config: RouterConfig,
  ledger: LedgerReader,
  credentials: Credentials | undefined,
): Promise<CheckResult> {
  const name = "replicas";
  let others: readonly Fingerprint[];
  let old: string | undefined;
  let early: ReadonlyMap<string, string>;
  try {
    const notes = await openNotes(ledgerAddress(config), bucketOptions(config));
    try {
      ({ others, old, early } = await livingReplicas(notes));
    } finally {
      await notes.close();
    }
  } catch (error) {
    const detail = `their fingerprints cannot be read: ${error instanceof Error ? error.message : String(error)}`;
    return { name, verdict: "not-tested", detail };
  }
  if (others.length === 0)
    return {
      name,
      verdict: "not-tested",
      detail: "no replica that runs has left its fingerprint beside the ledger",
    };
  const own = await ownFingerprint(config, ledger, credentials);
  const mismatches = mismatchesOf(own, others);
  const age = [
    ...(old === undefined
      ? []
      : [`the latest fingerprint is of ${old} by the store's clock: if that is long ago, none of them runs`]),
    ...[...early].map(
      ([replica, time]) =>
        `the fingerprint of ${replica} is of ${time}, which is to come: a clock is or was wrong, and nobody can tell whether it runs`,
    ),
  ].map((text) => `; ${text}`);
  if (mismatches.length === 0)
    return {
      name,
      verdict: early.size === 0 ? "passed" : "warning",
      detail: `${others.length} have the same list and tokens${age.join("")}`,
    };
  const told = mismatches
    .map((mismatch) => `${mismatch.replica} has ${wordsOf(mismatch, own, others)}`)
    .join("; ");
  const isSure = old === undefined && mismatches.some(({ replica }) => !early.has(replica));
  return isSure
    ? { name, verdict: "failed", detail: `${told}, unless it stopped within the last minutes${age.join("")}` }
    : { name, verdict: "warning", detail: `${told}${age.join("")}` };
}

/**
 * What the replicas left that live, by the store's clock; where it has none to ask, those that lived when the latest of them did.
 * @returns `old`: when that was, where this machine's clock says that it was long ago, and the store's is not known. `early`: those whose time
 *   is to come, and that time; they are compared as well, and the others' age is not told by them
 */
async function livingReplicas(notes: ReplicaNotes): Promise<{
  others: readonly Fingerprint[];
  old: string | undefined;
  early: ReadonlyMap<string, string>;
}> {
  const all = await notes.list().catch(whereNone);
  const clockMs = all.length === 0 ? undefined : await notes.nowMs?.();
  const times = all.map(({ writtenMs }) => writtenMs);
  const possible = times.filter((time) => time - (clockMs ?? Date.now()) < lifeMs);
  // When all of them are to come, the store's clock is another one than this machine's.
  const latestMs = Math.max(...(possible.length > 0 ? possible : times));
  const early = new Map<string, string>();
  const others = all.flatMap(({ replica, text, writtenMs }) => {
    const fingerprint = (clockMs ?? latestMs) - writtenMs < lifeMs ? parseFingerprint(text) : undefined;
    if (fingerprint === undefined) return [];
    if (writtenMs - (clockMs ?? latestMs) >= lifeMs) early.set(replica, new Date(writtenMs).toISOString());
    return [{ ...fingerprint, replica }];
  });
  const isOld = clockMs === undefined && others.length > 0 && Date.now() - latestMs >= lifeMs;
  return { others, old: isOld ? new Date(latestMs).toISOString() : undefined, early };
}

function wordsOf({ replica, part }: Mismatch, own: Fingerprint, others: readonly Fingerprint[]): string {
  const other = others.find((each) => each.replica === replica);
  if (part !== "capability" || other === undefined) return partNames[part];
  if (own.tokens?.capability === none) return "a capability token, and this configuration has none";
  return other.tokens?.capability === none
    ? "no capability token, and this configuration has one"
    : partNames[part];
}

/** No replica has made the place for notes yet: a folder, or a table. */
function whereNone(error: { code?: unknown }): [] {
  if (error.code !== "ENOENT" && error.code !== "42P01") throw error;
  return [];
}

/** As `TokenGenerations` writes it. */
const none = "none";

const partNames = {
  backends: "another list of dispatchers",
  ledger:
    "another ledger: one took the other's place while a router ran, and what the one knows can run again through the other",
  client: "another client token",
  backend: "another backend token",
  capability: "another capability token",
} as const;

async function ownFingerprint(
  config: RouterConfig,
  { ledgerId }: LedgerReader,
  credentials: Credentials | undefined,
): Promise<Fingerprint> {
  const list = createHash("sha256")
    .update(JSON.stringify(replicaList(config)))
    .digest("hex");
  const own = { version: 1, replica: config.replica, backends: `sha256:${list}`, ledger: ledgerId } as const;
  if (credentials === undefined || ledgerId === undefined) return own;
  const generations = new TokenGenerations(ledgerId);
  const { client, backend, capability } = credentials;
  const tokens = {
    client: await generations.of("client", client),
    backend: await generations.of("backend", [backend]),
    capability: await generations.of("capability", capability),
  };
  return { ...own, tokens };
}
