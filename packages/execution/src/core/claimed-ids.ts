// Which ids a router was said to have bound, by anything that it answered to this client: so that a later "never heard of it" is
// known for a loss, whichever handle hears it. Bounded: the ids that were told of longest ago are forgotten first.

/** Some megabytes, with ids as they mostly are. */
const standardCount = 16_384;

export class ClaimedIds {
  readonly #ids = new Set<string>();
  readonly #maxCount: number;

  /** @param maxCount how many are remembered; default 16,384 */
  constructor(maxCount = standardCount) {
    this.#maxCount = maxCount;
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  add(id: string): void {
    this.#ids.delete(id);
    this.#ids.add(id);
    const [oldest] = this.#ids;
    if (this.#ids.size > this.#maxCount && oldest !== undefined) this.#ids.delete(oldest);
  }
}
