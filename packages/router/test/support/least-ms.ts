/**
 * The shortest of many runs of two pieces of work, in ms. They take turns, so that a machine that is busy is so for both, and the shortest
 * run is one that nothing came between.
 */
export function leastMs(one: () => unknown, other: () => unknown): [oneMs: number, otherMs: number] {
  const least: [number, number] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < 20; round += 1) {
    for (const [at, work] of [one, other].entries()) {
      const startedMs = performance.now();
      work();
      least[at] = Math.min(least[at] ?? 0, performance.now() - startedMs);
    }
  }
  return least;
}
