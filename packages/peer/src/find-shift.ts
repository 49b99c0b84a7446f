/** How far a node's clock is off, found without its help: by which times it accepts in a signed request. */

/** Without a hint, shifts this far apart are tried: less than the width of the window, so that none is stepped over. */
const strideMs = 50_000;

/** And this many of them on each side: five minutes. */
const strides = 6;

/** To which the edge of the window is narrowed down. */
const precisionMs = 1_000;

/**
 * Finds how far the other clock is ahead, to a second; undefined when no tried shift was accepted.
 * @param accepts whether a request that is stamped this much later than now is accepted
 * @param windowMs the other side accepts what is this far from its clock, both ways
 * @param hintsMs shifts that are likely, tried first
 */
export async function findShift(
  accepts: (shiftMs: number) => Promise<boolean>,
  windowMs: number,
  hintsMs: readonly number[] = [],
): Promise<number | undefined> {
  const tried = [...hintsMs];
  for (let stride = 1; stride <= strides; stride += 1) tried.push(stride * strideMs, -stride * strideMs);
  for (const shiftMs of tried) {
    if (!(await accepts(shiftMs))) continue;
    let inside = shiftMs;
    let outside = shiftMs + 2 * windowMs + precisionMs;
    while (outside - inside > precisionMs) {
      const middle = Math.round((inside + outside) / 2);
      if (await accepts(middle)) inside = middle;
      else outside = middle;
    }
    return inside - windowMs;
  }
  return undefined;
}
