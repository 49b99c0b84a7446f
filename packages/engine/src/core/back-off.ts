// How long to wait before a crashed process is started again.

const firstMs = 100;
const longestMs = 10_000;

/**
 * The wait before start number `crashCount` + 1, in milliseconds: doubled for each crash in a row from 100 ms to 10 s, of
 * which a random half to whole is taken, so that nodes that crashed together do not start together.
 *
 * @param random a number in [0, 1)
 */
export function backOffMs(crashCount: number, random: number): number {
  const full = Math.min(longestMs, firstMs * 2 ** Math.min(Math.max(crashCount - 1, 0), 20));
  return full * (0.5 + random / 2);
}
