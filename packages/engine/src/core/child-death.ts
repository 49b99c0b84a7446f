// Why a workerd process ended, from its exit code and its last lines: the only signs it gives.

/** What the engine does about it: a fence is terminal, a Worker that does not load is the deployer's, the rest is started again. */
export type ChildDeath =
  | { readonly kind: "fenced"; readonly detail: string }
  | { readonly kind: "load"; readonly detail: string }
  | { readonly kind: "died"; readonly detail: string };

const fenced = /leaving the cluster: (.+)$/;
/** `service app: Uncaught …` is the Worker's own text, followed by lines of a stack that are indented. */
const load = /^service \S+: (.+)$/;
/** Printed the same way, but no reason for anything. */
const advice = /The compatibility flag \S+ became the default/;
const noise = /^(stack: |\s*$)/;
const loadLines = 12;

/** Reads the end of a process. `code` is null when a signal ended it. */
export function classifyDeath(code: number | null, errorLines: readonly string[]): ChildDeath {
  const reversed = [...errorLines].reverse();
  const fence = firstMatch(reversed, fenced);
  if (fence !== undefined && code !== 0 && code !== null) return { kind: "fenced", detail: fence };
  const loading = loadFailure(errorLines);
  if (loading !== "" && code !== 0 && code !== null) return { kind: "load", detail: loading };
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

function loadFailure(lines: readonly string[]): string {
  const kept: string[] = [];
  let inside = false;
  for (const line of lines) {
    const text = load.exec(line)?.[1];
    inside = text === undefined ? inside && /^\s/.test(line) : !advice.test(text);
    if (inside && !noise.test(line)) kept.push(text ?? line);
  }
  return kept.slice(0, loadLines).join("\n");
}
