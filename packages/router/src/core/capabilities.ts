// The router's answer about all nodes (execution API, section 7.1). Origins and errors are not told to callers.
import { capabilitiesVersion, isEligible, type NodeReport, stringifyJson } from "@cellkit/execution/contract";
import type { OwnAnswer } from "./answer.ts";

/** What asking one backend came to: its report, nothing that can be relied on, or a mistake of the router's own. */
export type Probe = { readonly report: NodeReport } | "lost" | "failed";

/** What a fan-out came to. */
export interface Capabilities {
  readonly answer: OwnAnswer;
  readonly nodeCount: number;
  readonly eligibleCount: number;
}

/** @param probes one for each backend, in the order of the list */
export function capabilitiesOf(probes: readonly Probe[]): Capabilities {
  const nodes = probes.map((probe, index) => {
    if (probe === "lost")
      return { index, preflightEligible: false, reason: "unreachable_unauthorized_or_incompatible" };
    if (probe === "failed") return { preflightEligible: false, reason: "probe_failed" };
    return { index, preflightEligible: isEligible(probe.report.node), report: probe.report };
  });
  const eligibleCount = nodes.filter(({ preflightEligible }) => preflightEligible).length;
  const body = stringifyJson({
    apiVersion: capabilitiesVersion,
    preflightOnly: true,
    eligibleNodes: eligibleCount,
    artifactReadiness: "not_checked",
    parentRouting: false,
    nodes,
  });
  return { answer: { status: 200, body }, nodeCount: nodes.length, eligibleCount };
}
