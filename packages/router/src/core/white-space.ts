// White space as the original counts it: Unicode's White_Space, which knows U+0085 and not U+FEFF; JavaScript's `trim` has it the other
// way round on both. Loops and no expression with `+$`, which takes quadratic time on hostile runs of spaces.

/** Whether a character is white space. */
function isWhite(code: number): boolean {
  if (code <= 0x20) return code === 0x20 || (code >= 0x09 && code <= 0x0d);
  if (code < 0x85) return false;
  return /\p{White_Space}/u.test(String.fromCharCode(code));
}

/** `text` without white space at its end. */
export function trimEnd(text: string): string {
  let end = text.length;
  while (end > 0 && isWhite(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

/** `text` without white space at both ends. */
export function trim(text: string): string {
  let start = 0;
  while (start < text.length && isWhite(text.charCodeAt(start))) start += 1;
  return trimEnd(text.slice(start));
}
