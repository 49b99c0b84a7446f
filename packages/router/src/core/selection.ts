const offsetBasis = 0xcbf29ce484222325n;
const prime = 0x100000001b3n;
const encoder = new TextEncoder();

/** FNV-1a, 64 bit, of the UTF-8 bytes of `text`: what every replica hashes an id with. */
export function fnv1a64(text: string): bigint {
  let hash = offsetBasis;
  for (const byte of encoder.encode(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * prime);
  return hash;
}

/**
 * The order in which backends are asked for their health: from the one the id's hash names, forward and around. The same id and the
 * same list give the same order on every replica.
 */
export function walkFromHash<T>(id: string, backends: readonly T[]): T[] {
  if (backends.length === 0) return [];
  return rotate(backends, Number(fnv1a64(id) % BigInt(backends.length)));
}

/** The same walk from a start of chance. `chance` is in [0, 1). */
export function walkFromChance<T>(chance: number, backends: readonly T[]): T[] {
  return rotate(backends, Math.floor(chance * backends.length));
}

function rotate<T>(list: readonly T[], start: number): T[] {
  return [...list.slice(start), ...list.slice(0, start)];
}
