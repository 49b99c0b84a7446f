// How calls and runs end, as codes.
import {
  CallError,
  DeadlineError,
  ExecutionError,
  type Submission,
  type TerminalRecord,
} from "@cellkit/execution";
import type { PlaneUnderTest } from "./plane.ts";

/** Codes of a run whose owner cannot be asked. */
export const lost: readonly string[] = ["CELLKIT_EXECUTION_OWNER_LOST", "CELLKIT_EXECUTION_OWNER_REMOVED"];
/** Codes of a call that reached no router. */
export const unanswered: readonly string[] = ["CELLKIT_EXECUTION_GATEWAY", "CELLKIT_EXECUTION_UNREACHABLE"];
/** Codes after which nobody may send again, and somebody has to look. */
export const ambiguous: readonly string[] = [
  ...lost,
  "CELLKIT_EXECUTION_INTERRUPTED",
  "CELLKIT_EXECUTION_OUTCOME_UNKNOWN",
];

/** Sends and waits; a failure is its code. */
export async function settle(plane: PlaneUnderTest, work: Submission): Promise<TerminalRecord | string> {
  try {
    return await plane.finish(work);
  } catch (error) {
    plane.options.signal.throwIfAborted();
    if (error instanceof ExecutionError) return codeOf(error);
    throw error;
  }
}

/** Ends a run, and tells how it is. */
export async function endOf(plane: PlaneUnderTest, work: Submission): Promise<string> {
  try {
    const end = await work.cancelUntilTerminal({ signal: plane.options.signal });
    if (end.kind === "never-submitted") return "CELLKIT_EXECUTION_UNKNOWN_EXECUTION";
    plane.keep(end.record);
    return end.record.phase;
  } catch (error) {
    plane.options.signal.throwIfAborted();
    if (error instanceof ExecutionError) return codeOf(error);
    throw error;
  }
}

/** The code of a call that fails; undefined where it does not. */
export async function refusalOf(call: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await call();
    return undefined;
  } catch (error) {
    if (error instanceof ExecutionError) return codeOf(error);
    throw error;
  }
}

/** Of a deadline, what its last try met. */
export function codeOf(error: ExecutionError): string {
  const { cause } = error;
  return error instanceof DeadlineError && cause instanceof CallError ? cause.code : error.code;
}
