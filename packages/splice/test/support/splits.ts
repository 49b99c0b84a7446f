// Feeds input in pieces, so that every parser is tried with every way to cut its input.

/** The ways to cut input that every table row goes through: whole, byte by byte, and at each single place. */
export function everyCut(input: Uint8Array): Uint8Array[][] {
  const bytewise = Array.from(input, (_, i) => input.subarray(i, i + 1));
  const twoPieces = Array.from(input, (_, i) => [input.subarray(0, i), input.subarray(i)]);
  return [[input], bytewise, ...twoPieces];
}

/** Cuts input at the given places, taken modulo its length. */
export function cutAt(input: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = [...new Set(places.map((place) => place % (input.length + 1)))].sort((a, b) => a - b);
  const pieces: Uint8Array[] = [];
  let from = 0;
  for (const end of [...ends, input.length]) {
    pieces.push(input.subarray(from, end));
    from = end;
  }
  return pieces;
}

export function bytes(text: string): Uint8Array {
  return Buffer.from(text, "latin1");
}
