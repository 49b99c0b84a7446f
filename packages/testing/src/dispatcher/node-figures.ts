import {
  capabilitiesVersion,
  isEligible,
  type NodeFigures,
  type NodeReport,
  requestVersions,
} from "@cellkit/execution";
import { checkMembers, count, flag, type MemberRules, text } from "../core/given.ts";

/** What a dispatcher says of its node. Every member can be changed while it runs. */
export interface NodeOptions {
  /** @default "test-node" */
  readonly name?: string;
  /** @default true */
  readonly kvm?: boolean;
  /** @default true */
  readonly cpuVirtualization?: boolean;
  /** @default true */
  readonly guestKernel?: boolean;
  /** @default true */
  readonly moteStore?: boolean;
  /** @default true */
  readonly toolStore?: boolean;
  /** Executions, with a prewarm, that may be active at once. @default 1024 */
  readonly maxCells?: number;
  /** Memory that these may reserve together, in bytes. @default 1 TiB */
  readonly memoryBytes?: number;
  /** How many of these may have egress. @default 1024 */
  readonly egressSlots?: number;
  /** Hosts that executions may reach, in lower case; undefined allows all. @default undefined */
  readonly egressHosts?: readonly string[] | undefined;
  /** The version that reports name. @default "0.6.0" */
  readonly binaryVersion?: string;
}

/** What a dispatcher says of its node, with all defaults. */
export type ResolvedNode = Required<Omit<NodeOptions, "egressHosts">> & Pick<NodeOptions, "egressHosts">;

const isHosts = (value: unknown) =>
  Array.isArray(value) && value.every((host) => typeof host === "string" && host === host.toLowerCase());

const nodeRules: MemberRules = {
  name: text,
  kvm: flag,
  cpuVirtualization: flag,
  guestKernel: flag,
  moteStore: flag,
  toolStore: flag,
  maxCells: count,
  memoryBytes: count,
  egressSlots: count,
  egressHosts: { fits: isHosts, give: "a list of hosts in lower case" },
  binaryVersion: text,
};

/** What a test says of a node. @throws TestingOptionError (`CELLKIT_TESTING_OPTION`) */
export function checkedNode<Node extends NodeOptions>(node: Node, more: MemberRules = {}): Node {
  checkMembers("node", node, { ...nodeRules, ...more });
  const isSaid = ([name, value]: [string, unknown]) => value !== undefined || name === "egressHosts";
  return Object.fromEntries(Object.entries(node).filter(isSaid)) as Node;
}

/** A node that takes everything, but for what the options say. */
export function resolveNode(options: NodeOptions): ResolvedNode {
  return {
    name: "test-node",
    kvm: true,
    cpuVirtualization: true,
    guestKernel: true,
    moteStore: true,
    toolStore: true,
    maxCells: 1024,
    memoryBytes: 2 ** 40,
    egressSlots: 1024,
    binaryVersion: "0.6.0",
    ...options,
  };
}

/** What active executions, and a prewarm, hold. */
export interface Reserved {
  readonly cells: number;
  readonly memoryBytes: bigint;
  readonly egressSlots: number;
}

/** A node's figures on the wire (execution API, section 7.2): memory and egress slots less what is reserved, never below 0. */
export function figuresOf(node: ResolvedNode, reserved: Reserved): NodeFigures {
  const free = BigInt(node.memoryBytes) - reserved.memoryBytes;
  return {
    node_name: node.name,
    kvm: node.kvm,
    cpu_virtualization: node.cpuVirtualization,
    guest_kernel: node.guestKernel,
    mote_store: node.moteStore,
    tool_store: node.toolStore,
    live_cells: reserved.cells,
    max_cells: node.maxCells,
    egress_slots: Math.max(0, node.egressSlots - reserved.egressSlots),
    memory_bytes: free > 0n ? free : 0n,
  };
}

/** Whether the node could run work at all, however much runs. */
export function isFit(node: ResolvedNode): boolean {
  const idle = { cells: 0, memoryBytes: 0n, egressSlots: 0 };
  return isEligible({ ...figuresOf(node, idle), live_cells: 0, max_cells: 1, memory_bytes: 1n });
}

/** A dispatcher's report (execution API, section 7.2). */
export function reportOf(node: ResolvedNode, reserved: Reserved): NodeReport {
  return {
    apiVersion: capabilitiesVersion,
    binaryVersion: node.binaryVersion,
    preflightOnly: true,
    node: figuresOf(node, reserved),
    requestVersions: [...requestVersions],
    harnessContracts: ["celln.reference-functions/v1", "celln.json-tools/v1"],
    persistentSessions: false,
    artifactReadiness: "not_checked",
    scopedArtifactContracts: [],
    scopedHttpsContracts: [],
  };
}
