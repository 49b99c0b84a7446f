// What a schema found wrong, in one line that may stand in an error: places and expected types, never a value.
import type { z } from "zod";

const maxShown = 5;
const maxCharacters = 400;

export function describeIssues(error: z.ZodError): string {
  const shown = error.issues.slice(0, maxShown).map((issue) => {
    const place = issue.path.map(String).join(".") || "the whole";
    return `${place}: ${issue.message}`;
  });
  const more = error.issues.length - shown.length;
  return `${shown.join("; ")}${more > 0 ? `; ${more} more` : ""}`.slice(0, maxCharacters);
}
