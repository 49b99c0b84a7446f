// White space as the reference sees it: Unicode's White_Space. JavaScript's trim also takes U+FEFF (a byte-order mark), and
// would so accept a token file or an identity that a router refuses.
const whiteSpace = /^\p{White_Space}$/u;

/** A text without white space at both ends. */
export function trimWhiteSpace(text: string): string {
  const characters = [...text];
  let start = 0;
  let end = characters.length;
  while (start < end && whiteSpace.test(characters[start] ?? "")) start++;
  while (end > start && whiteSpace.test(characters[end - 1] ?? "")) end--;
  return characters.slice(start, end).join("");
}

/** Whether a text has nothing but white space. */
export function isBlank(text: string): boolean {
  return /^\p{White_Space}*$/u.test(text);
}
