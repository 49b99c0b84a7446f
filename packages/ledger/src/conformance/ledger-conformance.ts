/** The rules that every ledger keeps, whatever stores it. */
import { randomBytes } from "node:crypto";
import { claimRules } from "./claim-rules.ts";
import {
  bindRule,
  type ConformanceCase,
  type ConformanceFeatures,
  type OpenLedger,
  type Rule,
} from "./conformance-case.ts";
import { lifecycleRules } from "./lifecycle-rules.ts";
import { raceRules } from "./race-rules.ts";
import { recordRules } from "./record-rules.ts";
import { retireRules } from "./retire-rules.ts";

const rules: readonly Rule[] = [
  ...claimRules,
  ...raceRules,
  ...recordRules,
  ...retireRules,
  ...lifecycleRules,
];

/**
 * The suite for one store: `for (const { name, run } of ledgerConformance(open)) it(name, run)`. Cases may run in any order and at
 * once; each has a place of its own, and closes what it opened. What lies at the places is left for the caller to remove.
 * @param open answers the ledger at a place, a word of `a-z 0-9 -` and at most 20 characters; called several times in a case
 * @param features what the suite may do, and what the store lacks; cases that need more are left out
 */
export function ledgerConformance(open: OpenLedger, features: ConformanceFeatures = {}): ConformanceCase[] {
  const run = randomBytes(4).toString("hex");
  const has = (need: NonNullable<Rule["needs"]>[number]) =>
    need === "plant" ? features.plant !== undefined : features.lacks?.[need] === undefined;
  return rules
    .filter(({ needs = [] }) => needs.every(has))
    .map((rule, index) => bindRule(rule, open, `c${run}-${index}`, features));
}
