import type { Alarms } from "./alarms.ts";
import type { RetryBudget } from "./core/retry-budget.ts";
import type { FleetNodes } from "./fleet-nodes.ts";

/** What a call needs of its fleet. */
export interface CallHost {
  readonly nodes: FleetNodes;
  readonly alarms: Alarms;
  readonly budget: RetryBudget | undefined;
  readonly now: () => number;
  readonly random: () => number;
  /** Calls that have no attempt alive, so that a destroyed fleet reaches them. */
  readonly waiting: Set<{ onDestroyed(error: Error): void }>;
  /** Set when the fleet was destroyed. */
  readonly destroyedBy: Error | undefined;
  onCallEnded(): void;
}
