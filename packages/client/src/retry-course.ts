import type { AttemptRun } from "./attempt-run.ts";
import { retryAfterOf } from "./call-failure.ts";
import type { RetryBudget } from "./core/retry-budget.ts";
import { planRetry, type Settled } from "./core/retry-plan.ts";
import { events } from "./events.ts";
import type { FleetNode } from "./fleet-node.ts";
import type { FleetNodes } from "./fleet-nodes.ts";
import type { ResolvedRetry } from "./options.ts";
import type { RequestPlan } from "./request-plan.ts";

/** Why there is no further attempt. */
export type Unretried = Settled | "budget";

const MAX_ATTEMPTS = 4;
/** With n nodes behind one address each try meets a draining one with probability 1/n. */
const MAX_ATTEMPTS_LOAD_BALANCED = 8;

/** Internal: what one call has spent on retries. Made when the first attempt goes wrong, so most calls have none. */
export class RetryCourse {
  /** Nodes that had an attempt. */
  readonly tried = new Set<FleetNode>();
  readonly #nodes: FleetNodes;
  readonly #budget: RetryBudget | undefined;
  readonly #random: () => number;
  readonly #retry: ResolvedRetry;
  readonly #request: RequestPlan | undefined;
  #freeUsed = false;
  #chargedCount = 0;

  constructor(
    host: { nodes: FleetNodes; budget: RetryBudget | undefined; random: () => number },
    retry: ResolvedRetry,
    request: RequestPlan | undefined,
  ) {
    this.#nodes = host.nodes;
    this.#budget = retry.budget === false ? undefined : host.budget;
    this.#random = host.random;
    this.#retry = retry;
    this.#request = request;
  }

  /** Whether `run` is followed by another attempt; if so it is charged, and told. */
  decide(run: AttemptRun, nowMs: number, leftMs: number): { delayMs: number; free: boolean } | Unretried {
    const nodes = this.#nodes;
    this.tried.add(run.node);
    const { loadBalancedOnly } = nodes;
    const plan = planRetry(
      {
        class: run.class,
        attemptCount: run.n,
        maxAttempts:
          this.#retry.maxAttempts ?? (loadBalancedOnly ? MAX_ATTEMPTS_LOAD_BALANCED : MAX_ATTEMPTS),
        repeatable: this.#request?.repeatable ?? true,
        replayable: this.#request?.replayable ?? true,
        freeUsed: this.#freeUsed,
        chargedCount: this.#chargedCount,
        otherNode: nodes.hasOther(this.tried),
        loadBalancedOnly,
        retryAfterMs: retryAfterOf(run) || undefined,
        leftMs,
      },
      this.#retry,
      this.#random(),
    );
    if (plan.kind === "settle") return plan.because;
    const { delayMs, free } = plan;
    const told = { class: run.class, from: run.node.id };
    if (!free && this.#budget?.charge(nowMs) === false) {
      if (events.budgetEmpty.hasSubscribers) events.budgetEmpty.publish(told);
      return "budget";
    }
    if (free) this.#freeUsed = true;
    else this.#chargedCount += 1;
    if (events.retry.hasSubscribers) events.retry.publish({ ...told, delayMs, free });
    return { delayMs, free };
  }
}
