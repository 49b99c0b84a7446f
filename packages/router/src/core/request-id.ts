// The id in the body of a submission (execution API, section 5.1). The router looks at nothing else, but the body must be JSON as the
// original's router reads it: stricter than JSON.parse about halves of surrogate pairs, numbers that no double holds, and depth. This is
// not `parseJson` of `@cellkit/execution/contract`, which reads as a dispatcher does: there a member that comes twice is an error, and
// here the last one counts, so that the dispatcher itself refuses it; there `1e999` keeps its digits, and here it is an error.
import { decodeUtf8, isExecutionId, maxJsonLevels } from "@cellkit/execution/contract";

/** Without these in a text, JSON.parse is strict enough. A hint inside of a string costs time and nothing else. */
const surrogateHint = /\\u[dD][89a-fA-F]/;
/** Of digits, only a run's begin is looked at: tried anew at each digit, 64 KiB of long numbers would take 45 ms. */
const overflowHint = /\d[eE]\+?\d\d|(?<!\d)\d{300}/;
const tokens = /"(?:[^"\\]|\\.)*"|[[\]{}]|-?\d[\d.eE+-]*/gs;

/** The id of a body; undefined where the body is not strict JSON, or its `id` not a text that the router takes. */
export function requestIdOf(body: Uint8Array): string | undefined {
  const text = decodeUtf8(body);
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null || !("id" in value)) return undefined;
  const { id } = value;
  return typeof id === "string" && isExecutionId(id) && isStrict(body, text) ? id : undefined;
}

function isStrict(body: Uint8Array, text: string): boolean {
  if (bracketCount(body) <= maxJsonLevels && !surrogateHint.test(text) && !overflowHint.test(text))
    return true;
  let depth = 0;
  // The text is known to be JSON, so strings, brackets and numbers can be told by how they begin.
  for (const [token] of text.matchAll(tokens)) {
    if (token === "{" || token === "[") {
      depth += 1;
      if (depth > maxJsonLevels) return false;
    } else if (token === "}" || token === "]") {
      depth -= 1;
    } else if (token.startsWith('"')) {
      if (surrogateHint.test(token) && !(JSON.parse(token) as string).isWellFormed()) return false;
    } else if (!Number.isFinite(Number(token))) {
      return false;
    }
  }
  return true;
}

/** Of those that open, in strings, too. */
function bracketCount(body: Uint8Array): number {
  let count = 0;
  // `[` and `{` differ in one bit.
  for (const byte of body) if ((byte & 0xdf) === 0x5b) count += 1;
  return count;
}
