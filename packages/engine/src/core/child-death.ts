// Why a workerd process ended, from its exit code and its last lines: the only signs it gives.

/** What the engine does about it: a fence is terminal, a Worker that does not load is the deployer's, the rest is started again. */
export type ChildDeath =
  | { readonly kind: "fenced"; readonly detail: string }
  | { readonly kind: "load"; readonly detail: string }
  | { readonly kind: "died"; readonly detail: string };

const fenced = /leaving the cluster: (.+)$/;
/** `service app: Uncaught …` is the Worker's own text; the stack and the consequences follow it. */
const load = /^service \S+: (.+)$/;
const noise = /^(stack: |\s*$)/;

/** Reads the end of a process. `code` is null when a signal ended it. */
export function classifyDeath(code: number | null, errorLines: readonly string[]): ChildDeath {
  const reversed = [...errorLines].reverse();
  const fence = firstMatch(reversed, fenced);
  if (fence !== undefined && code !== 0 && code !== null) return { kind: "fenced", detail: fence };
  const loading = errorLines.findIndex((line) => load.test(line));
  if (loading >= 0 && code !== 0 && code !== null) {
    const lines = errorLines.slice(loading, loading + 8).filter((line) => !noise.test(line));
    return {
      kind: "load",
      detail: lines
        .join("\n")
        .replace(/^service \S+: /, "")
        .trim(),
    };
  }
  const last = reversed.find((line) => !noise.test(line)) ?? "it printed nothing";
  return { kind: "died", detail: last };
}

function firstMatch(lines: readonly string[], pattern: RegExp): string | undefined {
  for (const line of lines) {
    const match = pattern.exec(line);
    if (match?.[1] !== undefined) return match[1];
  }
  return undefined;
}
