// Which addresses a name stands for, over many answers. A resolver may answer old and new sets in turn, so an address
// is believed gone only when several answers in a row left it out.

/** One set of addresses that changes with each answer. */
export class AddressSet {
  readonly #missesToRemove: number;
  readonly #missesByAddress = new Map<string, number>();

  /** @param missesToRemove answers in a row without an address that remove it, at least 1 */
  constructor(missesToRemove: number) {
    this.#missesToRemove = missesToRemove;
  }

  /** The addresses that are believed in, in the order in which they first came. */
  get addresses(): readonly string[] {
    return [...this.#missesByAddress.keys()];
  }

  /**
   * Takes an answer; an empty one changes nothing.
   * @returns true when the set changed
   */
  answered(addresses: readonly string[]): boolean {
    if (addresses.length === 0) return false;
    const present = new Set(addresses);
    let changed = false;
    for (const [address, misses] of this.#missesByAddress) {
      if (present.has(address)) continue;
      if (misses + 1 >= this.#missesToRemove) changed = this.#missesByAddress.delete(address);
      else this.#missesByAddress.set(address, misses + 1);
    }
    for (const address of present) {
      changed ||= !this.#missesByAddress.has(address);
      this.#missesByAddress.set(address, 0);
    }
    return changed;
  }
}

/** When to ask again: the TTL within bounds, a tenth earlier or later. All in milliseconds. */
export function refreshMs(ttlMs: number, minTtlMs: number, maxTtlMs: number, random: number): number {
  return Math.min(maxTtlMs, Math.max(minTtlMs, ttlMs)) * (0.9 + 0.2 * random);
}

/** Why a name cannot be resolved without a search list, or undefined when it can. */
export function nameProblem(name: string): string | undefined {
  if (name === "") return "the name is empty";
  if (name.endsWith(".") || name.split(".").length > 2) return undefined;
  return (
    `${name} is a short name, and search domains are not applied to it; write it in full with a dot at the end, as in ` +
    `${name.split(".").length === 1 ? `${name}.default.svc.cluster.local.` : `${name}.svc.cluster.local.`}, ` +
    "or pass useLookup: true"
  );
}
