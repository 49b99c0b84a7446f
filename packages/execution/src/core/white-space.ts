// White space as the reference counts it: Unicode's White_Space, which knows U+0085 and not U+FEFF; JavaScript's `trim` has it the other
// way round on both, and would so accept a token file that a router refuses. Loops and no expression with `+$`, which takes quadratic
// time on hostile runs of spaces.

/** Whether a UTF-16 unit is white space: all of it lies below the surrogates. */
function isWhite(unit: number): boolean {
  if (unit <= 0x20) return unit === 0x20 || (unit >= 0x09 && unit <= 0x0d);
  if (unit < 0x85) return false;
  return /\p{White_Space}/u.test(String.fromCharCode(unit));
}

/** A text without white space at its end. */
export function trimWhiteSpaceEnd(text: string): string {
  let end = text.length;
  while (end > 0 && isWhite(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

/** A text without white space at both ends. */
export function trimWhiteSpace(text: string): string {
  let start = 0;
  while (start < text.length && isWhite(text.charCodeAt(start))) start += 1;
  return trimWhiteSpaceEnd(text.slice(start));
}

/** Whether a text has nothing but white space. */
export function isBlank(text: string): boolean {
  return trimWhiteSpace(text) === "";
}
