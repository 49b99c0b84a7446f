// What a person wants to know of a process's log, which is JSON lines for machines.
import { z } from "zod";

const entrySchema = z.looseObject({
  level: z.string(),
  msg: z.string(),
  /** Set where workerd or the Worker printed the line. */
  stream: z.string().optional(),
});

type Entry = z.infer<typeof entrySchema>;

/**
 * What the Worker prints, and what went wrong; undefined for the rest. A line that is no log entry stays as it is. A fatal
 * entry is the reason of an end, which `reasonOf` tells.
 */
export function lineForPeople(line: string): string | undefined {
  const entry = parseEntry(line);
  if (entry === undefined) return line;
  if (entry.stream !== undefined) return entry.msg;
  return entry.level === "error" ? `error: ${entry.msg}` : undefined;
}

/** Why a process ended, from its last lines: the message of its last fatal entry, else its last line. */
export function reasonOf(lines: readonly string[]): string {
  const fatal = lines.findLast((line) => parseEntry(line)?.level === "fatal");
  const last = fatal ?? lines.findLast((line) => line.trim() !== "");
  if (last === undefined) return "it printed nothing";
  return parseEntry(last)?.msg ?? last;
}

function parseEntry(line: string): Entry | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return entrySchema.safeParse(JSON.parse(line)).data;
  } catch {
    // A line of the Worker's own that only looks like one.
    return undefined;
  }
}
