import { setTimeout as pause } from "node:timers/promises";
import type { ExecutionRequest } from "@cellkit/execution";
import { shown } from "../core/given.ts";
import { checkedEnd, type RunEnd } from "../core/run-end.ts";
import { TestingOptionError } from "../errors.ts";
import { until, type WaitOptions } from "../wait-until.ts";
import type { EntryState } from "./execution-book.ts";

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

  /** Ends an execution; false when it is not held. */
  finish(id: string, end: RunEnd): boolean {
    const resolve = this.#ends.get(id);
    resolve?.(end);
    return resolve !== undefined;
  }
}

/** What may hold an execution. */
export interface Holder {
  readonly held: HeldExecutions;
  readonly run: RunFn | RunMode;
  stateOf(): EntryState | undefined | Promise<EntryState | undefined>;
}

/**
 * Ends an execution that is held, or will be within a moment.
 *
 * @throws {@link TestingOptionError} (`CELLKIT_TESTING_OPTION`) when the end is none, or nothing will ever hold the execution;
 *   WaitTimeoutError
 */
export async function finishHeld(
  { held, run, stateOf }: Holder,
  id: string,
  end: RunEnd = success,
  options?: WaitOptions,
): Promise<void> {
  checkedEnd("end", end);
  if (run !== "hold")
    throw new TestingOptionError("run", 'holds no execution; give "hold" where one is to be finished');
  const finished = async () => {
    if (held.finish(id, end)) return true;
    const state = await stateOf();
    if (state === "active") return false;
    const what =
      state === undefined ? "is of no execution here; submit it first" : "is of an execution that has ended";
    throw new TestingOptionError("id", `${shown(id)} ${what}`);
  };
  await until(`an execution ${id} that is held`, finished, options);
}
