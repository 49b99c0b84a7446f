/** What a qualification answers. */

/** How a check went. `not-tested`: it could not be made, which proves nothing either way. */
export type CheckResult = "passed" | "failed" | "not-tested";

/** One check. */
export interface LedgerCheck {
  /** Stable, for programs: `claims-race`, `lock-excludes`, … */
  name: string;
  result: CheckResult;
  /** What was seen, with its figures; or why it was not tested. */
  detail: string;
  /** How long it took. */
  ms: number;
  /** Whether the verdict rests on it. The others are told so that people can decide. */
  required: boolean;
}

/**
 * - `qualified`: everything that the verdict rests on passed
 * - `violated`: some of it failed
 * - `unknown`: nothing failed, and some of it could not be tested
 */
export type Verdict = "qualified" | "violated" | "unknown";

/** What a qualification found. */
export interface LedgerQualification {
  /** Without credentials. */
  url: string;
  verdict: Verdict;
  checks: LedgerCheck[];
  /** What follows for whoever runs a ledger there, one sentence each. */
  advice: string[];
}

/** What a check's function answers. */
export interface Outcome {
  result: CheckResult;
  detail: string;
}

export const passed = (detail: string): Outcome => ({ result: "passed", detail });
export const failed = (detail: string): Outcome => ({ result: "failed", detail });
export const notTested = (detail: string): Outcome => ({ result: "not-tested", detail });

/** The verdict over checks. */
export function verdictOf(checks: readonly LedgerCheck[]): Verdict {
  const results = new Set(checks.filter(({ required }) => required).map(({ result }) => result));
  if (results.has("failed")) return "violated";
  return results.has("not-tested") || results.size === 0 ? "unknown" : "qualified";
}
