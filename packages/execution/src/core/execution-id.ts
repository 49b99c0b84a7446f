// Which ids go where. The router takes 1 to 512 of A–Z a–z 0–9 . _ -, the original TLS edge up to 128 that start with a letter
// or digit (and `:`, which the router refuses). What both take is what an id should be.
import { createHash } from "node:crypto";
import { ExecutionIdError } from "../errors.ts";

/** Whether the router takes an id: 1 to 512 of `A–Z a–z 0–9 . _ -`, and neither `.` nor `..`. */
export function isExecutionId(id: string): boolean {
  return /^[A-Za-z0-9._-]{1,512}$/.test(id) && id !== "." && id !== "..";
}

/** Whether every part of the plane takes an id: 1 to 128 of `A–Z a–z 0–9 . _ -`, the first a letter or digit. */
export function isPortableExecutionId(id: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(id);
}

const readableCharacters = 80;
const digestCharacters = 32;

/** A part as it can be told from its neighbours: a UUID, a date, or anything without the separator. */
const piece = /(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\d{4}-\d{2}-\d{2}|[^-]+)(?:-|$)/giy;
const endsLikeDigest = new RegExp(`(?:^|-)[0-9a-f]{${digestCharacters}}$`);

/**
 * An id that every part of the plane takes, made from names of yours: `executionId("summary", run.uid)` is
 * `summary-<uid>`. Parts are joined by `-` where they can be told apart again: none has a `-` of its own, but for UUIDs and dates
 * (`2026-11-30`), and the result has only characters that are allowed, 128 at most. Otherwise it is shortened to what can be read,
 * and 128 bits of the SHA-256 of all parts are appended: `executionId("a-b", "c")` is another id than `executionId("a", "b-c")`.
 * The same parts always give the same id, so a caller that restarts finds its run again; include something that is never used
 * twice, such as a UID, since an id is bound to one execution for ever.
 *
 * @throws {@link ExecutionIdError} (`CELLKIT_EXECUTION_ID`) when there is no part, or an empty one.
 */
export function executionId(...parts: readonly [string, ...string[]]): string {
  if (parts.length === 0) throw new ExecutionIdError("needs at least one part; give a name");
  const empty = parts.indexOf("");
  if (empty >= 0) {
    const which = `has an empty part, number ${empty + 1} of ${parts.length}`;
    throw new ExecutionIdError(`${which}; give every name at least one character`);
  }
  const plain = parts.join("-");
  if (isPortableExecutionId(plain) && areTold(parts, plain)) return plain;
  const digest = createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, digestCharacters);
  const readable = plain
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "")
    .slice(0, readableCharacters);
  return readable === "" ? digest : `${readable}-${digest}`;
}

/** Whether these parts can be read back from what they were joined to, so that no others are joined to the same. */
function areTold(parts: readonly string[], plain: string): boolean {
  if (endsLikeDigest.test(plain)) return false;
  const found = [...plain.matchAll(piece)].map(([text]) => text.replace(/-$/, ""));
  return found.length === parts.length && found.every((text, index) => text === parts[index]);
}
