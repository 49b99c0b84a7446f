// Capability reports: what a dispatcher says about its node, and what a router makes of all of them (execution API, section 7).
import { z } from "zod";
import { u32, u64 } from "./integers.ts";

/** The one version of capability reports. */
export const capabilitiesVersion = "celln.dev/capabilities-v1alpha1";

/** The most nodes that a router's answer lists. */
export const maxNodes = 32;

/** A node's own figures. `live_cells` and `max_cells` count sandboxes; `memory_bytes` is what is free. */
export const nodeFiguresSchema = z.object({
  node_name: z.string(),
  kvm: z.boolean(),
  cpu_virtualization: z.boolean(),
  guest_kernel: z.boolean(),
  mote_store: z.boolean(),
  tool_store: z.boolean(),
  live_cells: u32,
  max_cells: u32,
  memory_bytes: u64,
  egress_slots: u32,
});
/** Figures as they were read: `memory_bytes` is a bigint. */
export type NodeFigures = z.output<typeof nodeFiguresSchema>;

/** A dispatcher's report. Unknown members are left out; the two lists that older dispatchers lack become empty. */
export const nodeReportSchema = z.object({
  apiVersion: z.string(),
  binaryVersion: z.string(),
  preflightOnly: z.boolean(),
  node: nodeFiguresSchema,
  requestVersions: z.array(z.string()),
  harnessContracts: z.array(z.string()),
  persistentSessions: z.boolean(),
  artifactReadiness: z.string(),
  scopedArtifactContracts: z.array(z.string()).default([]),
  scopedHttpsContracts: z.array(z.string()).default([]),
});
/** A report as it was read: what a node is, what its dispatcher understands, and nothing that it would keep free for anybody. */
export type NodeReport = z.output<typeof nodeReportSchema>;

const indexed = { index: u32, preflightEligible: z.boolean() };
const entry = z.union([
  z.object({ ...indexed, report: nodeReportSchema }),
  z.object({ ...indexed, reason: z.literal("unreachable_unauthorized_or_incompatible") }),
  z.object({ preflightEligible: z.literal(false), reason: z.literal("probe_failed") }),
]);

/** A router's answer, as a router gives it. {@link CapabilityClient} reads answers with more tolerance, and recomputes. */
export const capabilitiesSchema = z.object({
  apiVersion: z.literal(capabilitiesVersion),
  preflightOnly: z.literal(true),
  eligibleNodes: u32,
  artifactReadiness: z.literal("not_checked"),
  parentRouting: z.boolean().default(false),
  nodes: z.array(entry).max(maxNodes),
});
/** A router's answer as it was read: one entry for each backend, with a report or the reason for none, and how many are eligible. */
export type Capabilities = z.output<typeof capabilitiesSchema>;

/** The members of a report that decide whether this protocol can be spoken with its dispatcher. */
type Contract = Pick<NodeReport, "apiVersion" | "preflightOnly" | "requestVersions" | "artifactReadiness">;

/** Whether a report is one that this protocol can rely on. */
export function isCompatible(report: Contract): boolean {
  return (
    report.apiVersion === capabilitiesVersion &&
    report.preflightOnly &&
    report.requestVersions.includes("celln.dev/v1alpha1") &&
    report.artifactReadiness === "not_checked"
  );
}

/** Whether a node could take work as it reported. Egress slots do not count. It reserves nothing. */
export function isEligible(node: Omit<NodeFigures, "node_name" | "egress_slots">): boolean {
  return (
    node.kvm &&
    node.cpu_virtualization &&
    node.guest_kernel &&
    node.mote_store &&
    node.tool_store &&
    node.live_cells < node.max_cells &&
    node.memory_bytes > 0n
  );
}
