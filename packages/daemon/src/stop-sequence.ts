// The ordered stop of a daemon. Steps run one after another in the order they were added, each within its bound: one
// that hangs or fails is reported and passed by, since the steps after it (leave the cluster, close listeners) matter
// more than a tidy list.
import { StepTimeoutError, StopSequenceError } from "./errors.ts";

/** How one step ended. */
export interface StepResult {
  readonly name: string;
  readonly outcome: "done" | "failed" | "timed out";
  readonly tookMs: number;
  /** Why, where it is not done. */
  readonly error?: unknown;
}

/** How the whole stop ended: the worst of its steps, a lack of time before a failure. */
export interface StopReport {
  readonly outcome: "clean" | "failed" | "timed out";
  readonly steps: readonly StepResult[];
}

/** Options of one step. */
export interface StepOptions {
  /** How long the step may take, in milliseconds; a function is asked when the step begins. Default 10 000. */
  boundMs?: number | (() => number);
}

/**
 * What a step does. The signal is aborted when its bound has passed. A step that finds out itself that time was too
 * short throws {@link StepTimeoutError}.
 */
export type Step = (signal: AbortSignal) => Promise<void> | void;

/** Bound of a step that names none: long enough for a listener to finish its requests, short enough for Kubernetes' 30 s. */
const DEFAULT_BOUND_MS = 10_000;

/** Named steps in order, each with a bound. Fill it while starting, {@link StopSequence.run} it once when told to stop. */
export class StopSequence {
  readonly #steps: Array<{ name: string; run: Step; boundMs: () => number }> = [];
  readonly #onStep: (result: StepResult) => void;
  #report: Promise<StopReport> | undefined;

  /** @param onStep told of each step as it ends, for the log */
  constructor(onStep: (result: StepResult) => void = () => {}) {
    this.#onStep = onStep;
  }

  /** Whether the stop has begun. */
  get started(): boolean {
    return this.#report !== undefined;
  }

  /**
   * Adds a step after those already there.
   * @throws {@link StopSequenceError} (`CELLKIT_DAEMON_STOP_SEQUENCE`) once the stop has begun.
   */
  add(name: string, run: Step, { boundMs = DEFAULT_BOUND_MS }: StepOptions = {}): this {
    if (this.started) throw new StopSequenceError(name);
    this.#steps.push({ name, run, boundMs: typeof boundMs === "number" ? () => boundMs : boundMs });
    return this;
  }

  /** Runs all steps; never rejects. Called again, it answers with the same promise. */
  run(): Promise<StopReport> {
    this.#report ??= this.#runAll();
    return this.#report;
  }

  async #runAll(): Promise<StopReport> {
    const steps: StepResult[] = [];
    for (const { name, run, boundMs } of this.#steps) {
      const result = await runStep(name, run, Math.max(0, boundMs()));
      steps.push(result);
      this.#onStep(result);
    }
    const has = (outcome: StepResult["outcome"]) => steps.some((step) => step.outcome === outcome);
    return { outcome: has("timed out") ? "timed out" : has("failed") ? "failed" : "clean", steps };
  }
}

/** Runs one step within its bound. Never rejects. */
export async function runStep(name: string, run: Step, boundMs: number): Promise<StepResult> {
  const startMs = performance.now();
  const abort = new AbortController();
  const late = new StepTimeoutError(name, boundMs);
  let timer: NodeJS.Timeout | undefined;
  const bound = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      abort.abort(late);
      reject(late);
    }, boundMs);
  });
  try {
    await Promise.race([(async () => run(abort.signal))(), bound]);
    return { name, outcome: "done", tookMs: performance.now() - startMs };
  } catch (error) {
    const outcome = error instanceof StepTimeoutError || abort.signal.aborted ? "timed out" : "failed";
    return { name, outcome, tookMs: performance.now() - startMs, error };
  } finally {
    clearTimeout(timer);
  }
}
