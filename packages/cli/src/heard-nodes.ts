// Which dispatchers a router hears from, by the names of their nodes. A count does not tell it: those that it hears may be others.
import type { BackendLook } from "@cellkit/router";
import type { TokenVerdict } from "./router-probe.ts";

/** The name that the node behind an origin gave; undefined where it gave none. */
export function nameOf(...looks: readonly BackendLook[]): string | undefined {
  return looks.flatMap(({ nodes }) => nodes)[0]?.node_name;
}

/** The nodes that a router has reports of; undefined where it takes none of the tokens. */
export function heardBy(verdicts: readonly TokenVerdict[]): readonly string[] | undefined {
  return verdicts.find((verdict) => verdict.kind === "accepted")?.nodes;
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
