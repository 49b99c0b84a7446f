// The text of a file with the Worker's vars or secrets: one JSON object of strings, or lines KEY=VALUE with # comments.
import { z } from "zod";

const jsonSchema = z.record(z.string().min(1), z.string());

/** The variables, or a phrase that says what is wrong without showing any value. */
export type ParsedVariables =
  | { readonly variables: Readonly<Record<string, string>> }
  | { readonly problem: string };

/** Reads the text of such a file. In lines, a value in double or single quotes loses them; nothing is expanded. */
export function parseVariables(text: string): ParsedVariables {
  if (text.trimStart().startsWith("{")) {
    const parsed = jsonSchema.safeParse(parseJson(text));
    return parsed.success
      ? { variables: parsed.data }
      : { problem: "it starts like JSON but is not one object of strings" };
  }
  const variables: Record<string, string> = {};
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const trimmed = line.trim();
    if (trimmed === "" || trimmed.startsWith("#")) continue;
    const match = /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)$/.exec(trimmed);
    if (match?.[1] === undefined || match[2] === undefined)
      return { problem: `line ${index + 1} is not KEY=VALUE` };
    const quoted = /^(["'])(.*)\1$/.exec(match[2]);
    variables[match[1]] = quoted?.[2] ?? match[2];
  }
  return { variables };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
