/** What a choice between nodes looks at. */
export interface Load {
  /** Requests under way. */
  readonly inflight: number;
  /** Share of the traffic, relative to the others. */
  readonly weight: number;
}

/**
 * Power of two choices: two distinct random candidates, the one with fewer requests in flight per weight wins, and a
 * coin decides a tie. Constant time, no allocation.
 * @param random answers a number in [0, 1)
 */
export function powerOfTwo<T extends Load>(candidates: readonly T[], random: () => number): T | undefined {
  const { length } = candidates;
  if (length < 2) return candidates[0];
  const one = Math.floor(random() * length);
  // The second draw is from the others: shift it past the first.
  let other = Math.floor(random() * (length - 1));
  if (other >= one) other += 1;
  const first = candidates[one];
  const second = candidates[other];
  if (first === undefined || second === undefined) return first ?? second;
  // The candidates came in random order already, so taking the first is the coin.
  return first.inflight / first.weight <= second.inflight / second.weight ? first : second;
}
