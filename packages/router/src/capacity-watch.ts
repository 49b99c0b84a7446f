// Says in good time that a ledger fills up: at its capacity, new ids are refused, and no id ever becomes free.

/** The shares of the capacity at which it is said. */
const capacityRatios = [0.8, 0.9, 0.95] as const;

/** One ledger's count, as of the last counting. */
export class CapacityWatch {
  readonly capacity: number;
  readonly #onReached: (ratio: number, count: number) => void;
  #count = 0;
  #told = 0;

  /** @param onReached hears of each share once, the highest that was reached; again if the count fell below it meanwhile */
  constructor(capacity: number, onReached: (ratio: number, count: number) => void) {
    this.capacity = capacity;
    this.#onReached = onReached;
  }

  /** Records, as of the last counting. */
  get count(): number {
    return this.#count;
  }

  see(count: number): void {
    this.#count = count;
    const reached = capacityRatios.filter((ratio) => count >= ratio * this.capacity).at(-1) ?? 0;
    const isNew = reached > this.#told;
    this.#told = reached;
    if (isNew) this.#onReached(reached, count);
  }
}
