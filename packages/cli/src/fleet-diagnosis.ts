// What is wrong with a fleet: whom to look at, and what the whole of it says.
import {
  type DiagnosisTarget,
  diagnoseNode,
  type FleetKey,
  type FleetStore,
  type NodeDiagnosis,
  NodeDirectory,
  type NodeRecord,
  readRotation,
  requireFleetKeys,
} from "@cellkit/peer";

/** Nodes that stopped without a word leave their records: those of the last minutes are worth a look. */
const recentMs = 600_000;

/** Nodes that are looked at at the same time. */
const atOnce = 16;

/** A fleet, as it was found. */
export interface FleetDiagnosis {
  readonly nodes: readonly NodeDiagnosis[];
  /** Records that cannot be read; such a node may well run. */
  readonly unreadable: ReadonlyArray<{ readonly key: string; readonly reason: string }>;
  /** Records of nodes that stopped more than ten minutes ago: not looked at. */
  readonly olderCount: number;
  /** There are more records than were read. */
  readonly truncated: boolean;
  /** How far a rotation of the fleet key is; undefined without a bucket. */
  readonly rotation: "none" | "accept" | "sign" | "retire" | undefined;
}

/** Which nodes. */
export interface DiagnoseFleetOptions {
  /** Only these: names of nodes, or `HOST:PORT`. Empty: all. */
  readonly peers: readonly string[];
  /** In place of the bucket's keys. */
  readonly key?: FleetKey | undefined;
  /** Generation of the protocol that nodes should speak. @default what most live ones say */
  readonly protocol?: 2 | 5 | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Looks at the nodes of a bucket. @throws what the store throws, and FleetKeyMissingError of @cellkit/peer */
export async function diagnoseFleet(
  store: FleetStore,
  { peers, key, protocol, signal }: DiagnoseFleetOptions,
): Promise<FleetDiagnosis> {
  const { live, expired, unreadable, truncated } = await new NodeDirectory(store).list({ signal });
  const since = Date.now() - recentMs;
  const recent = expired.filter(({ expiresMs }) => expiresMs > since);
  const records = [...live, ...expired];
  const found = peers.map((peer) => recordOf(peer, records) ?? { addr: peer });
  // What is neither a record nor an address was meant for a name.
  const unknown = found.filter(({ addr }) => !/:\d+$/.test(addr));
  const targets: DiagnosisTarget[] =
    peers.length === 0 ? [...live, ...recent] : found.filter((target) => !unknown.includes(target));
  const keys = key === undefined ? (await requireFleetKeys(store, { signal })).keys : [key];
  const expectedProtocol = protocol ?? spokenByMost(live);
  return {
    nodes: [
      ...(await diagnoseAll(targets, { keys, expectedProtocol, signal })),
      ...unknown.map(({ addr }) => absentNode(addr, live)),
    ],
    unreadable: peers.length === 0 ? unreadable : [],
    olderCount: peers.length === 0 ? expired.length - recent.length : 0,
    truncated,
    rotation: key === undefined ? (await readRotation(store, { signal })).phase : undefined,
  };
}

/** Looks at nodes by their addresses alone. */
export async function diagnosePeers({
  peers,
  key,
  protocol,
  signal,
}: DiagnoseFleetOptions): Promise<FleetDiagnosis> {
  const options = { keys: key === undefined ? [] : [key], expectedProtocol: protocol, signal };
  const nodes = await diagnoseAll(
    peers.map((addr) => ({ addr })),
    options,
  );
  return { nodes, unreadable: [], olderCount: 0, truncated: false, rotation: undefined };
}

/** Whether somebody has to do something. A node that is being stopped, or has stopped, is no trouble. */
export function isTrouble({ nodes, unreadable, truncated }: FleetDiagnosis): boolean {
  const calm = nodes.every(({ verdict }) => ["ready", "draining", "gone"].includes(verdict));
  return !calm || unreadable.length > 0 || truncated || !nodes.some(({ verdict }) => verdict === "ready");
}

/** Clocks that differ by less from each other than this are taken for the same wrong one. */
const sameClockMs = 5_000;

/** Several nodes that agree with each other on the time, and none that agrees with this machine: its own clock is the suspect. */
export function isOwnClockSuspect({ nodes }: FleetDiagnosis): boolean {
  const told = nodes.flatMap(({ skewMs }) => (skewMs === undefined ? [] : [skewMs]));
  const skewed = nodes.filter(({ verdict }) => verdict === "clock-skew").length;
  return skewed > 1 && skewed === told.length && Math.max(...told) - Math.min(...told) < sameClockMs;
}

/** The rows of a table, its head first. */
export function diagnosisRows({ nodes, unreadable }: FleetDiagnosis): string[][] {
  return [
    ["NODE", "ADDRESS", "STATE", "PROTOCOL", "CLOCK", "ANSWERED", "DETAIL"],
    ...nodes.map(({ node, addr, verdict, peerProtocol, skewMs, roundTripMs, detail }) => [
      node ?? "-",
      addr === "" ? "-" : addr,
      verdict,
      peerProtocol === undefined ? "-" : String(peerProtocol),
      skewMs === undefined ? "-" : clock(skewMs),
      roundTripMs === undefined ? "-" : `${Math.max(1, Math.round(roundTripMs))} ms`,
      detail,
    ]),
    ...unreadable.map(({ key, reason }) => ["-", "-", "bad-record", "-", "-", "-", `${key} ${reason}`]),
  ];
}

/** An answer's time is told in whole seconds: what is within them is the same time. */
function clock(skewMs: number): string {
  const seconds = Math.round(skewMs / 1_000);
  if (Math.abs(skewMs) < 1_500) return "same";
  return `${seconds > 0 ? "+" : ""}${seconds} s`;
}

/** A name that no record has. */
function absentNode(node: string, live: readonly NodeRecord[]): NodeDiagnosis {
  const names = live.slice(0, 5).map((record) => record.node);
  const more = live.length > names.length ? `, and ${live.length - names.length} more` : "";
  const has = names.length === 0 ? "no live node" : `${names.join(", ")}${more}`;
  return {
    node,
    addr: "",
    verdict: "unreachable",
    detail: `no such node in the bucket; it has ${has}`,
    proved: false,
    skewMs: undefined,
    peerProtocol: undefined,
    roundTripMs: undefined,
    version: undefined,
  };
}

function recordOf(peer: string, records: readonly NodeRecord[]): NodeRecord | undefined {
  return records.find(({ node, addr }) => node === peer || addr === peer);
}

function spokenByMost(live: readonly NodeRecord[]): 2 | 5 | undefined {
  const two = live.filter(({ peerProtocol }) => peerProtocol === 2).length;
  const five = live.filter(({ peerProtocol }) => peerProtocol === 5).length;
  if (two + five === 0) return undefined;
  return two > five ? 2 : 5;
}

async function diagnoseAll(
  targets: readonly DiagnosisTarget[],
  options: Parameters<typeof diagnoseNode>[1],
): Promise<NodeDiagnosis[]> {
  const found: NodeDiagnosis[] = [];
  const queue = targets.entries();
  const look = async (): Promise<void> => {
    for (const [index, target] of queue) found[index] = await diagnoseNode(target, options);
  };
  await Promise.all(Array.from({ length: atOnce }, look));
  return found;
}
