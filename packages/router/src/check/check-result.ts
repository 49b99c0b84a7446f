/**
 * - `passed`: it is as it must be.
 * - `warning`: the router would start and serve, but not as it should.
 * - `failed`: the router would not start, would refuse requests, or could run work where nobody finds it.
 * - `not-tested`: nothing could be learnt; the detail says why.
 */
export type CheckVerdict = "passed" | "warning" | "failed" | "not-tested";

/** What one check found. */
export interface CheckResult {
  /** `tokens`, `ledger`, `backend http://a:8787`, … */
  readonly name: string;
  readonly verdict: CheckVerdict;
  /** For people; without secrets. */
  readonly detail: string;
}
