// How long to wait before the next try: longer each time, never outside the bounds, and not in step with others.

const growth = 1.6;
/** Each delay is moved by up to this part of itself, so that callers that began together do not stay together. */
const spread = 0.2;

export interface Pace {
  readonly minMs: number;
  readonly maxMs: number;
}

/**
 * The delay before a try, in milliseconds.
 *
 * @param tries how many were made, from 1
 * @param random a number from 0 to 1, from the caller
 */
export function delayMs({ minMs, maxMs }: Pace, tries: number, random: number): number {
  const grown = Math.min(maxMs, minMs * growth ** (tries - 1));
  const moved = grown * (1 + spread * (2 * random - 1));
  return Math.round(Math.min(maxMs, Math.max(minMs, moved)));
}
