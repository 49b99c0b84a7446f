// Which dispatchers a router hears from, by the names of their nodes. A count does not tell it: those that it hears may be others.
import type { BackendLook } from "@cellkit/router";
import type { TokenVerdict } from "./router-probe.ts";

/** The name that the node behind an origin gave; undefined where it gave none. */
export function nameOf(...looks: readonly BackendLook[]): string | undefined {
  return looks.flatMap(({ nodes }) => nodes)[0]?.node_name;
}

/** What a router says of its dispatchers; undefined where it takes none of the tokens. */
export function heardBy(
  verdicts: readonly TokenVerdict[],
): Extract<TokenVerdict, { kind: "accepted" }> | undefined {
  return verdicts.find((verdict) => verdict.kind === "accepted");
}

/**
 * Why a router has dispatchers that were not given; undefined where it has none that can be seen.
 * @param given the names of those that were given; undefined for one that told none
 */
export function notGiven(
  verdicts: readonly TokenVerdict[],
  given: readonly (string | undefined)[],
): string | undefined {
  const heard = heardBy(verdicts);
  if (heard === undefined) return undefined;
  const advice = "give each of its list by --backend";
  if (heard.listedCount > given.length)
    return `has ${heard.listedCount} dispatchers in its list, and ${given.length} were given: ${advice}`;
  const names = given.filter((name) => name !== undefined);
  const others = without(heard.nodes, names);
  // Some of them may be those that told no name here.
  return others.length <= given.length - names.length
    ? undefined
    : `hears from ${others.join(", ")}, at no dispatcher that was given: ${advice}`;
}

/** The names of one list, each as often as the other does not have it. */
export function without(names: readonly string[], others: readonly string[]): string[] {
  const left = [...others];
  return names.filter((name) => {
    const at = left.indexOf(name);
    if (at !== -1) left.splice(at, 1);
    return at === -1;
  });
}
