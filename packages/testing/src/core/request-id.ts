// The id in the body of a submission, as a router reads it (execution API, section 5.1): its dispatcher reads the same body again, by
// stricter rules, and then the id is used up.
import {
  decodeUtf8,
  isExecutionId,
  JsonDecimal,
  maxJsonLevels,
  parseExactJson,
} from "@cellkit/execution/contract";

/**
 * The id; undefined where a router finds none that it takes. Of a member that comes twice the last one counts, and only that one is
 * looked at.
 */
export function requestIdOf(body: Uint8Array): string | undefined {
  const value = parsed(body);
  if (typeof value !== "object" || value === null || !("id" in value)) return undefined;
  const { id } = value;
  return typeof id === "string" && isExecutionId(id) && isStrict(value, 1) ? id : undefined;
}

function parsed(body: Uint8Array): unknown {
  const text = decodeUtf8(body);
  if (text === undefined) return undefined;
  try {
    return parseExactJson(text);
  } catch {
    // It is no JSON, or it has more levels than the stack holds, which are far too many.
    return undefined;
  }
}

/** Whether there is no half of a surrogate pair in it, no number that no double holds, and no level too many. */
function isStrict(value: unknown, level: number): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value === "bigint") return Number.isFinite(Number(value));
  if (value instanceof JsonDecimal) return Number.isFinite(Number(value.source));
  if (typeof value !== "object" || value === null) return true;
  if (level > maxJsonLevels) return false;
  return Object.entries(value).every(([name, member]) => name.isWellFormed() && isStrict(member, level + 1));
}
