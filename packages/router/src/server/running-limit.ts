/** A place among the requests that run. */
export interface Place {
  /** Gives it back, to whoever is next. Again: nothing. */
  leave(): void;
  /**
   * Gives it to others while something is waited for that nobody else should wait for, and takes one again behind that, when its turn has
   * come. May be used for several things at once.
   */
  lend<T>(wait: () => Promise<T>): Promise<T>;
}

/** How many requests of one kind run at once; others wait for their turn, first come, first served. */
export class RunningLimit {
  readonly #limitCount: number;
  readonly #waiting: (() => void)[] = [];
  #runningCount = 0;
  #lentCount = 0;

  constructor(limitCount: number) {
    this.#limitCount = limitCount;
  }

  get runningCount(): number {
    return this.#runningCount;
  }

  /** Those that wait for a place, and those that have lent theirs. */
  get waitingCount(): number {
    return this.#waiting.length + this.#lentCount;
  }

  /** Waits for a place. */
  async enter(): Promise<Place> {
    await this.#take();
    let isLeft = false;
    let loanCount = 0;
    return {
      leave: () => {
        if (!isLeft && loanCount === 0) this.#giveOn();
        isLeft = true;
      },
      lend: async (wait) => {
        loanCount += 1;
        if (loanCount === 1 && !isLeft) this.#giveOn();
        this.#lentCount += 1;
        try {
          return await wait();
        } finally {
          this.#lentCount -= 1;
          if (loanCount === 1 && !isLeft) {
            await this.#take();
            // It was left while it waited in line.
            if (isLeft) this.#giveOn();
          }
          loanCount -= 1;
        }
      },
    };
  }

  async #take(): Promise<void> {
    if (this.#runningCount < this.#limitCount) this.#runningCount += 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #giveOn(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#runningCount -= 1;
    else next();
  }
}
