// A value of the caller's in a message: enough of it to be found, on one line, and nothing that may be secret.

const maxCharacters = 80;

/** A text in quotes, shortened. Not for texts that may hold a secret. */
export function shown(text: string): string {
  const quoted = JSON.stringify(text.slice(0, maxCharacters));
  return text.length > maxCharacters ? `${quoted}… (${text.length} characters)` : quoted;
}

/** {@link shown} of a URL, without what stands before an `@` or behind a `?` or `#`, where credentials may be. */
export function shownUrl(text: string): string {
  return shown(text.replace(/[?#].*$/s, "?…").replace(/^.*@/s, "…@"));
}
