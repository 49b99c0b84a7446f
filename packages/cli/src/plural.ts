/** A count with its word: `1 binding`, `2 bindings`. */
export function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}
