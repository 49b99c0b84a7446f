/** How many retries a fleet may afford. */
export interface BudgetRules {
  /** Retries per call started. */
  readonly ratio: number;
  /** Retries per second besides. */
  readonly minPerSecond: number;
  readonly windowMs: number;
}

/** The window moves in steps of this part of it. */
const SLOT_COUNT = 10;

/**
 * Retries that all calls of a fleet share: over a sliding window, `ratio` x calls started + `minPerSecond` per second,
 * less the retries charged. It keeps a fleet in trouble from being asked many times what it cannot answer once.
 */
export class RetryBudget {
  readonly #rules: BudgetRules;
  readonly #slotMs: number;
  readonly #started = new Float64Array(SLOT_COUNT);
  readonly #charged = new Float64Array(SLOT_COUNT);
  #slot = 0;

  constructor(rules: BudgetRules) {
    this.#rules = rules;
    this.#slotMs = Math.max(1, rules.windowMs / SLOT_COUNT);
  }

  /** Counts a call. */
  started(nowMs: number): void {
    const index = this.#at(nowMs);
    this.#started[index] = (this.#started[index] ?? 0) + 1;
  }

  /** What is left to spend. */
  balance(nowMs: number): number {
    this.#at(nowMs);
    const { ratio, minPerSecond, windowMs } = this.#rules;
    return ratio * sum(this.#started) + (minPerSecond * windowMs) / 1_000 - sum(this.#charged);
  }

  /** Spends one if there is one. */
  charge(nowMs: number): boolean {
    if (this.balance(nowMs) < 1) return false;
    const index = this.#at(nowMs);
    this.#charged[index] = (this.#charged[index] ?? 0) + 1;
    return true;
  }

  /** Moves the window; answers the slot of this moment. */
  #at(nowMs: number): number {
    const slot = Math.floor(nowMs / this.#slotMs);
    if (slot > this.#slot) {
      const stale = Math.min(slot - this.#slot, SLOT_COUNT);
      for (let back = 0; back < stale; back += 1) {
        this.#started[(slot - back) % SLOT_COUNT] = 0;
        this.#charged[(slot - back) % SLOT_COUNT] = 0;
      }
      this.#slot = slot;
    }
    return this.#slot % SLOT_COUNT;
  }
}

function sum(values: Float64Array): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
