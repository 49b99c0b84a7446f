// Metrics with a dispatcher's origin as a label. Where dispatchers are discovered, each new pod has another address: those that left the list
// are kept for a while, so that what was counted last is still read, and not for ever.
import type { Counter } from "@cellkit/daemon";

/** Of dispatchers that left the list, so many keep their counters. */
const maxGoneCount = 100;

/** The counters of a router that have the label `backend`. */
export class BackendSeries {
  readonly #counters: readonly Counter<string>[];
  readonly #seen = new Set<string>();
  /** Those that left, the longest gone first. */
  readonly #gone = new Set<string>();

  constructor(counters: readonly Counter<string>[]) {
    this.#counters = counters;
  }

  /** Something was counted for it. */
  see(backend: string): void {
    this.#seen.add(backend);
  }

  /** Forgets those that left the list longest ago, where there are too many. */
  async trim(listed: readonly string[]): Promise<void> {
    for (const backend of this.#seen)
      if (listed.includes(backend)) this.#gone.delete(backend);
      else this.#gone.add(backend);
    const dropped = [...this.#gone].slice(0, Math.max(0, this.#gone.size - maxGoneCount));
    if (dropped.length === 0) return;
    for (const backend of dropped) {
      this.#gone.delete(backend);
      this.#seen.delete(backend);
    }
    for (const counter of this.#counters)
      for (const { labels } of (await counter.get()).values)
        if (dropped.includes(String(labels["backend"]))) counter.remove(labels);
  }
}
