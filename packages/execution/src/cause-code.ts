// The code of what lies under a failure, for people who look for it: `ECONNREFUSED`, `ENOENT`, `SELF_SIGNED_CERT_IN_CHAIN`.

/** How far down a chain of causes is looked. */
const maxDepth = 5;

/** The first code of an error or of its causes; undefined when there is none. */
export function causeCode(error: unknown, depth = 0): string | undefined {
  if (!(error instanceof Error) || depth === maxDepth) return undefined;
  if (error.name === "TimeoutError") return "ETIMEDOUT";
  if ("code" in error && typeof error.code === "string" && error.code !== "") return error.code;
  return causeCode(error instanceof AggregateError ? error.errors[0] : error.cause, depth + 1);
}
