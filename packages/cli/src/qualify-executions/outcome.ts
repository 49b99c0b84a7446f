// What a check found.
import type { ShownResult } from "./evidence.ts";

/** What a check found. */
export interface CheckOutcome {
  readonly result: ShownResult;
  readonly detail: string;
}

/** It is as it must be. */
export const passed = (detail: string): CheckOutcome => ({ result: "passed", detail });
/** It is not. */
export const failed = (detail: string): CheckOutcome => ({ result: "failed", detail });
/** Nothing can be told; `detail` says why. */
export const notShown = (detail: string): CheckOutcome => ({ result: "not-shown", detail });
