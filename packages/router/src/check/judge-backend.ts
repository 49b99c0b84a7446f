// What several looks at one origin say together. Nothing here asks anybody.
import type { BackendLook, CallEnd } from "./backend-look.ts";
import type { CheckResult } from "./check-result.ts";

/** Who answered, as far as dispatchers tell: two with one name and as many cells cannot be told apart. */
function identitiesOf({ nodes }: BackendLook): readonly string[] {
  return nodes.map(({ node_name, max_cells }) => `${node_name} (${max_cells} cells)`);
}

/** The names of the nodes that answered. */
export function nodeNamesOf(looks: readonly BackendLook[]): readonly string[] {
  return [...new Set(looks.flatMap(({ nodes }) => nodes.map(({ node_name }) => node_name)))];
}

/**
 * Whether an origin is exactly one dispatcher that this router can use.
 * @param looks at least one, each over fresh connections
 */
export function judgeBackend(origin: string, looks: readonly BackendLook[]): CheckResult {
  const result = (verdict: CheckResult["verdict"], detail: string): CheckResult => ({
    name: `backend ${origin}`,
    verdict,
    detail,
  });
  const identities = [...new Set(looks.flatMap(identitiesOf))];
  // Before everything else: the right token and good health do not help work that nobody finds again.
  if (identities.length > 1)
    return result(
      "failed",
      `different nodes answer behind it: ${identities.join("; ")}. A balancer is no owner: list each dispatcher by an address of its own`,
    );
  const silent = looks.find(({ health }) => health.status === undefined);
  if (silent !== undefined) {
    const often = `${looks.filter(({ health }) => health.status === undefined).length} of ${looks.length} times`;
    return result("failed", `${often} it gave no answer: ${silent.health.problem ?? "unknown"}`);
  }
  const refused = looks.find(({ report }) => report.status === 401);
  if (refused !== undefined) return result("failed", "it refuses the backend token");
  const unready = looks.find(({ report }) => report.status === 503);
  if (unready !== undefined) return result("failed", "it cannot use its own backend token (503)");
  const [identity] = identities;
  if (identity === undefined)
    return result("warning", `it does not tell which node it is (${toldOf(looks[0]?.report)})`);
  if (looks.some(({ binaryVersion }) => binaryVersion === undefined))
    return result(
      "warning",
      `${identity} gives no capability report that discovery counts (${toldOf(looks.find((look) => look.binaryVersion === undefined)?.report)})`,
    );
  if (looks.some(({ healthy }) => !healthy))
    return result("warning", `${identity} takes no new work at the moment: full, draining, or without KVM`);
  return result("passed", `${identity}, the same each of ${looks.length} times`);
}

function toldOf(end: CallEnd | undefined): string {
  return end?.status === undefined ? (end?.problem ?? "no answer") : `status ${end.status}`;
}

/** Origins behind which the same name answers: one dispatcher twice in the list, or two with one name. */
export function judgeNames(names: ReadonlyMap<string, readonly string[]>): CheckResult | undefined {
  const origins = new Map<string, string[]>();
  for (const [origin, found] of names)
    for (const name of found) origins.set(name, [...(origins.get(name) ?? []), origin]);
  const twice = [...origins].filter(([, where]) => where.length > 1);
  if (twice.length === 0) return undefined;
  return {
    name: "node names",
    verdict: "warning",
    detail: `${twice.map(([name, where]) => `${name} answers at ${where.join(" and ")}`).join("; ")}: one dispatcher that is listed twice, or two that have the same name`,
  };
}
