// What a check found.
import type { ShownResult } from "./evidence.ts";

/** What a check found. */
export interface CheckOutcome {
  readonly result: ShownResult;
  readonly detail: string;
}

export const passed = (detail: string): CheckOutcome => ({ result: "passed", detail });
export const failed = (detail: string): CheckOutcome => ({ result: "failed", detail });
export const notShown = (detail: string): CheckOutcome => ({ result: "not-shown", detail });
