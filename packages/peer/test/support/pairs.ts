/** Names and values as received, from node:http's `rawHeaders`. */
export function pairsOf(rawHeaders: readonly string[]): Array<[string, string]> {
  return rawHeaders.flatMap(
    (name, index): Array<[string, string]> => (index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? ""]] : []),
  );
}
