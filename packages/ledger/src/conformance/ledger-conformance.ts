/** The rules that every ledger keeps, whatever stores it. */
import { randomBytes } from "node:crypto";
import { LedgerOptionError } from "../errors.ts";
import { claimRules } from "./claim-rules.ts";
import type {
  ConformanceCase,
  ConformanceFeature,
  ConformanceFeatures,
  OpenLedger,
} from "./conformance-case.ts";
import { lifecycleRules } from "./lifecycle-rules.ts";
import { raceRules } from "./race-rules.ts";
import { recordRules } from "./record-rules.ts";
import { retireRules } from "./retire-rules.ts";
import { bindRule, skipRule } from "./run-rule.ts";
import type { Rule } from "./scene.ts";

const rules: readonly Rule[] = [
  ...claimRules,
  ...raceRules,
  ...recordRules,
  ...retireRules,
  ...lifecycleRules,
];

const FEATURES: readonly ConformanceFeature[] = ["capacity", "retiring", "requireExisting"];
const DEFAULT_TIMEOUT_MS = 30_000;
/** The longest that a timer of Node can wait. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/**
 * The suite for one store: `for (const { name, skip, run } of ledgerConformance(open)) it.skipIf(skip !== undefined)(name, run)`. The list
 * has every rule, also those that this store cannot be held against. Cases may run in any order and at once; each has a place of its own,
 * closes what it opened, and fails when it does not end in time. What lies at the places is left for the caller to remove.
 * @param open answers a handle of the ledger at a place; called several times in a case
 * @param features what the suite may do, and what the store lacks; cases that need more have a `skip`
 * @throws LedgerOptionError (CELLKIT_LEDGER_OPTION) for a timeout that is none, or a feature in `lacks` that nobody knows
 */
export function ledgerConformance(open: OpenLedger, features: ConformanceFeatures = {}): ConformanceCase[] {
  const { plant, lacks = {}, timeoutMs = DEFAULT_TIMEOUT_MS } = features;
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > MAX_TIMEOUT_MS)
    throw new LedgerOptionError(
      `timeoutMs is a whole number of milliseconds from 1 to ${MAX_TIMEOUT_MS}, not ${timeoutMs}`,
    );
  for (const name of Object.keys(lacks))
    if (!FEATURES.some((feature) => feature === name))
      throw new LedgerOptionError(`no case needs ${name}: a store may lack ${FEATURES.join(", ")}`);
  const reasons: Partial<Record<NonNullable<Rule["needs"]>[number], string>> = {
    ...(plant === undefined && { plant: "no plant was given, which puts a corrupt record into the store" }),
  };
  for (const feature of FEATURES) {
    const why = lacks[feature];
    if (why !== undefined) reasons[feature] = `the store lacks ${feature}: ${why}`;
  }
  const run = randomBytes(4).toString("hex");
  return rules.map((rule, index) => {
    const skip = rule.needs?.map((need) => reasons[need]).find((reason) => reason !== undefined);
    if (skip !== undefined) return skipRule(rule, skip);
    return bindRule(rule, open, `c${run}-${index}`, { plant, lacks, timeoutMs });
  });
}
