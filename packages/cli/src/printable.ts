// What comes from a store or another machine, made fit for a terminal.

/**
 * Characters that a terminal obeys or that hide what stands there: controls (of both kinds), formats such as those that turn
 * the direction of writing, halves of surrogate pairs, and separators of lines.
 */
const unfit = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** `\u` and four digits for each unit. */
function escaped(text: string): string {
  let result = "";
  for (let at = 0; at < text.length; at++)
    result += `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`;
  return result;
}

/** A text that nobody here wrote, for people: what a terminal would obey is shown as `\u001b`. */
export function printable(text: string): string {
  return text.replace(unfit, escaped);
}

/** A value as one line of JSON, in which nothing is that a terminal would obey. */
export function jsonLine(value: unknown): string {
  return printable(JSON.stringify(value));
}
