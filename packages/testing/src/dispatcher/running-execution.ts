import { setTimeout as pause } from "node:timers/promises";
import type { ExecutionRequest } from "@cellkit/execution";
import { checkedEnd, type RunEnd } from "../core/run-end.ts";
import { TestingOptionError } from "../errors.ts";

/** An execution while it runs, as the test's `run` gets it. */
export interface RunningExecution {
  readonly id: string;
  readonly request: ExecutionRequest;
  /** The exact bytes that were submitted. */
  readonly body: Uint8Array;
  /** Aborted by a cancel, and when the dispatcher dies. */
  readonly signal: AbortSignal;
  /** Shows a phase, such as `Running`, in the record. */
  phase(phase: string): Promise<void>;
}

/**
 * Runs an execution. When it throws, or returns what is no end, the execution failed, and the record's reason says so. It should end soon after its signal is aborted, or play a teardown that hangs. Nobody holds it to the request's `timeoutMs`.
 */
export type RunFn = (execution: RunningExecution) => RunEnd | Promise<RunEnd>;

const success: RunEnd = { kind: "succeeded", output: "ok" };

/** @throws {@link TestingOptionError} when it is none of what `run` may be */
export function checkedRun(run: RunFn | RunMode): RunFn | RunMode {
  // A test need not be typed.
  const given: unknown = run;
  if (given === "succeed" || given === "hold" || typeof given === "function") return run;
  if (typeof run === "object" && Number.isFinite(run?.afterMs) && run.afterMs >= 0) return run;
  throw new TestingOptionError("run", 'is none of "succeed", "hold", { afterMs } and a function');
}

/** The function that runs what a test wants. */
export function runFnOf(run: RunFn | RunMode, held: HeldExecutions): RunFn {
  if (run === "succeed") return () => success;
  if (run === "hold") return held.run;
  return typeof run === "function" ? run : succeedAfter(run.afterMs);
}

/** Succeeds after a time, unless it is cancelled before. */
function succeedAfter(ms: number): RunFn {
  return async ({ signal }) => {
    const done = pause(ms, success, { signal, ref: false });
    return done.catch(() => ({ kind: "cancelled" }) as const);
  };
}

/** A {@link RunFn} that is provided: see {@link DispatcherOptions.run}. */
export type RunMode = "succeed" | "hold" | { readonly afterMs: number };

/** Executions that wait for the test to say how they end. */
export class HeldExecutions {
  readonly #ends = new Map<string, (end: RunEnd) => void>();

  /** A {@link RunFn}: a cancel ends it at once. */
  readonly run: RunFn = async (execution) => {
    await execution.phase("Running");
    return new Promise<RunEnd>((resolve) => {
      this.#ends.set(execution.id, resolve);
      const cancelled = () => resolve({ kind: "cancelled" });
      if (execution.signal.aborted) cancelled();
      else execution.signal.addEventListener("abort", cancelled, { once: true });
    }).finally(() => this.#ends.delete(execution.id));
  };

  /** Ends an execution; false when it is not held. @throws {@link TestingOptionError} when the end is none */
  finish(id: string, end: RunEnd): boolean {
    checkedEnd("end", end);
    const resolve = this.#ends.get(id);
    resolve?.(end);
    return resolve !== undefined;
  }
}
