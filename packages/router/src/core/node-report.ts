// What dispatchers say of their nodes (execution API, sections 4.3, 7.2 and 7.3). Unsigned 64-bit figures keep their digits.
import { z } from "zod";

/** The one version of capability reports. */
export const capabilitiesVersion = "celln.dev/capabilities-v1alpha1";

type SourceReviver = (key: string, value: unknown, context: { source?: string }) => unknown;
// ECMAScript's source text access; in every Node that we support, and not yet in TypeScript's library.
const parseWithSource = JSON.parse as (text: string, reviver: SourceReviver) => unknown;
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

/** Whole numbers become bigints, so that none is rounded. @throws SyntaxError */
function parseExact(text: string): unknown {
  return parseWithSource(text, (_key, value, { source = "" }) =>
    typeof value === "number" && /^\d+$/.test(source) ? BigInt(source) : value,
  );
}

/** JSON text with the digits of bigints. */
export function stringifyExact(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === "bigint" ? rawJSON(String(member)) : member,
  );
}

const u32 = z.bigint().max(0xffff_ffffn);
const u64 = z.bigint().max(0xffff_ffff_ffff_ffffn);

const figures = z.object({
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
/** A node's figures, all of its whole numbers exact. */
export type NodeFigures = z.output<typeof figures>;

const report = z.object({
  apiVersion: z.literal(capabilitiesVersion),
  binaryVersion: z.string(),
  preflightOnly: z.literal(true),
  node: figures,
  requestVersions: z.array(z.string()).refine((versions) => versions.includes("celln.dev/v1alpha1")),
  harnessContracts: z.array(z.string()),
  persistentSessions: z.boolean(),
  artifactReadiness: z.literal("not_checked"),
  scopedArtifactContracts: z.array(z.string()).default([]),
  scopedHttpsContracts: z.array(z.string()).default([]),
});
/** A compatible report, without the members that are not known. */
export type NodeReport = z.output<typeof report>;

/** The report in an answer's body; undefined where it is none, or none that this protocol can rely on. */
export function parseReport(body: string): NodeReport | undefined {
  return report.safeParse(parsed(body)).data;
}

/** Whether a node could take work as it reported. Egress slots do not count. It reserves nothing. */
export function isEligible(node: NodeFigures): boolean {
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

/** What a health probe showed. */
export interface BackendHealth {
  /** Whether new work may go there. */
  readonly healthy: boolean;
  /** The node's own figures; undefined from dispatchers that do not give them all. */
  readonly node: NodeFigures | undefined;
}

/** The health of a backend that could not be asked. */
export const unhealthy: BackendHealth = { healthy: false, node: undefined };

const health = z.object({ ok: z.literal(true), kvm: z.literal(true) });
const healthNode = z.object({ node: figures });

/** Healthy means status 200, and both `ok` and `kvm` true; other members do not count. */
export function parseHealth(status: number, body: string): BackendHealth {
  const value = parsed(body);
  return {
    healthy: status === 200 && health.safeParse(value).success,
    node: healthNode.safeParse(value).data?.node,
  };
}

function parsed(body: string): unknown {
  try {
    return parseExact(body);
  } catch {
    return undefined;
  }
}
