// What a start has taken and an end must give back, in reverse order. (Node 22 has no AsyncDisposableStack; and its
// releases would have no bound.)
import { runStep, type Step, type StepResult } from "./stop-sequence.ts";

/** Bound of one release: it only closes what nobody waits for any more. */
const RELEASE_BOUND_MS = 5_000;

/** Releases to run when a program ends, the last taken first, each within 5 s. */
export class ReleaseStack {
  readonly #releases: Array<{ name: string; release: Step }> = [];

  /** Adds a release. */
  defer(name: string, release: Step): void {
    this.#releases.push({ name, release });
  }

  /** Runs what was added and not yet run. Answers with those that failed or ran out of time; never rejects. */
  async releaseAll(): Promise<StepResult[]> {
    const bad: StepResult[] = [];
    for (let next = this.#releases.pop(); next !== undefined; next = this.#releases.pop()) {
      const result = await runStep(next.name, next.release, RELEASE_BOUND_MS);
      if (result.outcome !== "done") bad.push(result);
    }
    return bad;
  }
}
