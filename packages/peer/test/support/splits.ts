/** The ways to cut input that every parser is tried with: whole, byte by byte, and at each single place. */
export function everyCut(input: Uint8Array): Uint8Array[][] {
  const bytewise = Array.from(input, (_, i) => input.subarray(i, i + 1));
  const twoPieces = Array.from(input, (_, i) => [input.subarray(0, i), input.subarray(i)]);
  return [[input], bytewise, ...twoPieces];
}

/** Cuts input at the given places, taken modulo its length. */
export function cutAt(input: Uint8Array, places: readonly number[]): Uint8Array[] {
  const cuts = [...new Set(places.map((place) => place % (input.length + 1)))].sort((a, b) => a - b);
  return [0, ...cuts].map((from, i) => input.subarray(from, cuts[i] ?? input.length));
}
