/** How many requests of one kind run at once; others wait for their turn, first come, first served. */
export class RunningLimit {
  readonly #limitCount: number;
  readonly #waiting: (() => void)[] = [];
  #runningCount = 0;

  constructor(limitCount: number) {
    this.#limitCount = limitCount;
  }

  get runningCount(): number {
    return this.#runningCount;
  }

  get waitingCount(): number {
    return this.#waiting.length;
  }

  /** Waits for a turn; answers what ends it. */
  async enter(): Promise<() => void> {
    if (this.#runningCount < this.#limitCount) this.#runningCount += 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return this.#leave;
  }

  /** A turn goes on to the next one. */
  readonly #leave = () => {
    const next = this.#waiting.shift();
    if (next === undefined) this.#runningCount -= 1;
    else next();
  };
}
