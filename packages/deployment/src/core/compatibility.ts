/** Compatibility dates and flags: what the nodes' runtime cannot load is refused before anything is written. */
import { flagLines, newestDate } from "./runtime-flags.ts";

/** The runtime refuses earlier dates as malformed. */
const oldestDate = "2000-01-01";

/** Known to the runtime, and yet not for a Worker of a node. */
const refusedFlags: Readonly<Record<string, string>> = {
  disable_ctx_exports: "a node that drains finds the cells by ctx.exports",
  python_workers: "a node runs Workers of JavaScript and WebAssembly",
};

/** Flags that cannot stand together, one list each; a flag without an opposite stands alone. */
const groups = flagLines
  .trim()
  .split("\n")
  .map((line) => line.split(" "));
const flags = groups.flat();

/**
 * Everything about a date and flags that no node can load, one sentence each. That the date lies in the future of the
 * node's clock is not asked: a runtime knows few days after its release, and those are over when it is installed.
 * @param date a calendar day, `YYYY-MM-DD`
 */
export function compatibilityProblems(date: string, wanted: readonly string[]): string[] {
  const problems: string[] = [];
  if (date < oldestDate)
    problems.push(`compatibility_date: ${date} is before ${oldestDate}, the oldest there is`);
  if (date > newestDate) {
    problems.push(
      `compatibility_date: ${date} is after ${newestDate}, the newest that a node's runtime knows: use that one or an earlier one`,
    );
  }
  for (const flag of new Set(wanted)) {
    const reason = Object.hasOwn(refusedFlags, flag) ? refusedFlags[flag] : undefined;
    if (reason !== undefined) problems.push(`compatibility_flags: ${flag} is not supported: ${reason}`);
    else if (!flags.includes(flag)) {
      problems.push(
        `compatibility_flags: ${flag} is not a flag of the runtime; the nearest is ${nearest(flag)}`,
      );
    }
  }
  for (const group of groups) {
    const together = group.filter((flag) => wanted.includes(flag));
    if (together.length > 1) {
      problems.push(`compatibility_flags: ${together.join(" and ")} contradict each other: keep one of them`);
    }
  }
  return problems;
}

/** The flag that has most pairs of letters in common with a word. */
function nearest(word: string): string {
  const pairs = pairsOf(word);
  let best = { flag: "", share: -1 };
  for (const flag of flags) {
    const other = pairsOf(flag);
    const common = [...pairs].filter((pair) => other.has(pair)).length;
    const share = (2 * common) / (pairs.size + other.size);
    if (share > best.share) best = { flag, share };
  }
  return best.flag;
}

/** The pairs of neighbouring letters of a word, its two ends marked. */
function pairsOf(word: string): Set<string> {
  const marked = ` ${word} `;
  return new Set(Array.from({ length: marked.length - 1 }, (_, at) => marked.slice(at, at + 2)));
}
