/** Every way to cut bytes in two, and byte by byte. */
export function* everySplit(bytes: Uint8Array): Generator<Uint8Array[]> {
  yield [bytes];
  for (let at = 1; at < bytes.length; at += 1) yield [bytes.subarray(0, at), bytes.subarray(at)];
  yield Array.from(bytes, (_, index) => bytes.subarray(index, index + 1));
}
