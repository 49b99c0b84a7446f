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
import { TokenGenerations } from "../fingerprint/token-generation.ts";
import { bucketOptions, ledgerAddress } from "../router-ledger.ts";
import { replicaList } from "../wiring.ts";
import type { CheckResult } from "./check-result.ts";

/** A note that is so much older than the newest one is of a replica that is gone. */
const lifeMs = 120_000;

/** @param credentials undefined: they cannot be used, and only lists are compared */
export async function checkReplicas(
  config: RouterConfig,
  ledger: LedgerReader,
  credentials: Credentials | undefined,
): Promise<CheckResult> {
  const name = "replicas";
  let others: readonly Fingerprint[];
  try {
    const notes = await openNotes(ledgerAddress(config), bucketOptions(config));
    try {
      const all = await notes.list().catch(whereNone);
      const newestMs = Math.max(...all.map(({ writtenMs }) => writtenMs));
      others = all.flatMap(({ replica, text, writtenMs }) => {
        const fingerprint = newestMs - writtenMs < lifeMs ? parseFingerprint(text) : undefined;
        return fingerprint === undefined ? [] : [{ ...fingerprint, replica }];
      });
    } finally {
      await notes.close();
    }
  } catch (error) {
    const detail = `their fingerprints cannot be read: ${error instanceof Error ? error.message : String(error)}`;
    return { name, verdict: "not-tested", detail };
  }
  if (others.length === 0)
    return { name, verdict: "not-tested", detail: "no replica has left its fingerprint beside the ledger" };
  const own = await ownFingerprint(config, ledger, credentials);
  const mismatches = mismatchesOf(own, others);
  if (mismatches.length === 0)
    return { name, verdict: "passed", detail: `${others.length} have the same list and tokens` };
  const wordsOf = (part: Mismatch["part"], other: Fingerprint | undefined): string => {
    if (part !== "capability" || other === undefined) return partNames[part];
    if (own.tokens?.capability === none) return "a capability token, and this configuration has none";
    return other.tokens?.capability === none
      ? "no capability token, and this configuration has one"
      : partNames[part];
  };
  const told = mismatches
    .map(({ replica, part }) => {
      const other = others.find((each) => each.replica === replica);
      return `${replica} has ${wordsOf(part, other)}`;
    })
    .join("; ");
  return { name, verdict: "failed", detail: `${told}, unless it stopped within the last minutes` };
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
  const own = { version: 1, replica: config.replica, backends: `sha256:${list}` } as const;
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
