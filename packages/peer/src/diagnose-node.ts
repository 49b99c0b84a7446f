/**
 * What is wrong with a node, seen from here: looks at its open state, probes it, and where the probe is refused finds out
 * why. The protocol answers a wrong key and a wrong clock alike; the answer's `Date` tells them apart, and where there is
 * none, a probe with another time does: a node takes what was signed within 30 s of its own clock.
 */
import type { PeerVersion } from "./core/constants.ts";
import type { FleetKey } from "./core/fleet-key.ts";
import { PeerNoAnswerError, PeerOptionError, PeerUnreachableError } from "./errors.ts";
import { notHttp } from "./exchange.ts";
import { type NodeView, type ViewBounds, viewNode } from "./node-view.ts";
import { parsePeerAddress } from "./peer-address.ts";
import { faultOfProof, type ProbeAnswer, type ProofFault, probeBounds, probeNode } from "./peer-probe.ts";
import { isWrongTarget, seconds, whyUnauthorized } from "./why-unauthorized.ts";

/** A node that is looked at: its record, or as much as is known. */
export interface DiagnosisTarget {
  /** `host:port` of its internal listener. */
  readonly addr: string;
  /** Its name; without it, the name that it gives itself is taken and proves nothing. */
  readonly node?: string | undefined;
  readonly peerProtocol?: number | undefined;
  readonly probePublicKey?: string | undefined;
  /** Of its record: hints at its clock. */
  readonly expiresMs?: number | undefined;
  readonly load?: { readonly sampledMs: number } | undefined;
}

/** The state of a node. From `unreachable` to `wrong-version` no call to it can succeed. */
export type NodeVerdict =
  /** Answers, proves who it is, serves. */
  | "ready"
  /** No connection to its address, though its record is in force. */
  | "unreachable"
  /** No connection to its address, and its record ran out: it has stopped. */
  | "gone"
  /** Something else answers at its address. */
  | "not-a-node"
  /** Another node, or a later process, answers at its address: the record is stale. */
  | "wrong-node"
  /** Its fleet key is another one. */
  | "wrong-key"
  /** Its clock, or this one, is off by more than 30 s. */
  | "clock-skew"
  /** It speaks another generation of the protocol than it, or the fleet, says. */
  | "wrong-version"
  /** It does not serve yet, or not any more, though nobody stops it. */
  | "not-ready"
  /** It is being stopped and hands its cells over. */
  | "draining";

/** What was found. */
export interface NodeDiagnosis {
  /** As its record, or it itself, says. */
  readonly node: string | undefined;
  readonly addr: string;
  readonly verdict: NodeVerdict;
  /** One sentence: what was seen, and what to do. */
  readonly detail: string;
  /** The process that wrote the record was proved to answer. */
  readonly proved: boolean;
  /** How far its clock is ahead of this one (behind: negative), to about a second; undefined when nothing told. */
  readonly skewMs: number | undefined;
  /** Generation of the protocol that it speaks. */
  readonly peerProtocol: number | undefined;
  readonly roundTripMs: number | undefined;
  /** Its program's version, where it tells. */
  readonly version: string | undefined;
}

/** Options of {@link diagnoseNode}. */
export interface DiagnoseOptions {
  /** Keys of the fleet; the first signs. Empty: only what needs no key is looked at. */
  readonly keys: readonly FleetKey[];
  /** Generation that the fleet speaks. @default the record's */
  readonly expectedProtocol?: PeerVersion | undefined;
  /** How long the node may take for each answer; there are two to five, and some forty where its clock has to be found out. @default 5_000 */
  readonly answerTimeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

type Found = Pick<NodeDiagnosis, "verdict" | "detail"> & Partial<NodeDiagnosis>;

/** Looks at one node; throws nothing but the signal's reason. */
export async function diagnoseNode(
  target: DiagnosisTarget,
  options: DiagnoseOptions,
): Promise<NodeDiagnosis> {
  let view: NodeView | undefined;
  let found: Found;
  try {
    const bounds = {
      answerTimeoutMs: options.answerTimeoutMs ?? probeBounds.totalTimeoutMs,
      signal: options.signal,
    };
    view = await viewNode(parsePeerAddress(target.addr), bounds);
    found = await judge(target, view, { ...options, ...bounds });
  } catch (error) {
    found = failure(error, target);
  }
  return {
    node: target.node ?? view?.node,
    addr: target.addr,
    proved: false,
    skewMs: undefined,
    peerProtocol: undefined,
    roundTripMs: undefined,
    version: view?.version,
    ...found,
  };
}

async function judge(
  target: DiagnosisTarget,
  view: NodeView,
  options: DiagnoseOptions & ViewBounds,
): Promise<Found> {
  const { answerTimeoutMs, signal } = options;
  const [key] = options.keys;
  if (key === undefined) {
    if (view.isNode) return serving(target, view, "its key and its identity were not checked");
    return view.answered
      ? { verdict: "not-a-node", detail: "what answers there is no node's internal listener" }
      : { verdict: "not-ready", detail: "it takes the connection but gives no usable answer" };
  }
  const { peerProtocol } = target;
  if (peerProtocol !== undefined && !isVersion(peerProtocol))
    return {
      verdict: "wrong-version",
      peerProtocol,
      detail: `its record says protocol ${peerProtocol}, which is not known here`,
    };
  const node = target.node ?? view.node;
  const ask = (version: PeerVersion, key: FleetKey, shiftMs = 0): Promise<ProbeAnswer> =>
    probeNode(
      { address: parsePeerAddress(target.addr), node: node ?? unknownNode },
      {
        version,
        key,
        shiftMs,
        answerTimeoutMs,
        signal,
      },
    );
  const order: PeerVersion[] = peerProtocol === 2 ? [2, 5] : [5, 2];
  let heard: string | undefined;
  for (const version of order) {
    const answer = await ask(version, key);
    heard = answer.version ?? heard;
    // The other generation does not know this path, or says so.
    if (answer.status === 426 || answer.version === undefined) continue;
    const measured: Partial<NodeDiagnosis> = {
      skewMs: answer.skewMs,
      peerProtocol: version,
      roundTripMs: answer.roundTripMs,
    };
    const expected = options.expectedProtocol ?? peerProtocol;
    if (expected !== undefined && expected !== version)
      return {
        ...measured,
        verdict: "wrong-version",
        detail: `it speaks protocol ${version}, and protocol ${expected} is expected: run nodes of one generation in a fleet`,
      };
    const found =
      answer.status === 401
        ? await whyUnauthorized(answer, target, options.keys, (...how) => ask(version, ...how))
        : judgeAnswer(answer, target, view);
    return { ...measured, ...found };
  }
  if (heard !== undefined)
    return {
      verdict: "wrong-version",
      peerProtocol: Number.parseInt(heard, 10),
      detail: `it speaks protocol ${JSON.stringify(heard.slice(0, 16))}, which is not known here`,
    };
  return view.isNode
    ? { verdict: "wrong-version", detail: "it is a node, but answers no probe of protocol 2 or 5" }
    : { verdict: "not-a-node", detail: "what answers there is no node's internal listener" };
}

/** A name that no node has: one that is asked under it says that it is another, which it does for holders of its key only. */
const unknownNode = "node-of-unknown-name";

function isVersion(version: number): version is PeerVersion {
  return version === 2 || version === 5;
}

/** The key is right and so is the clock. */
function judgeAnswer(answer: ProbeAnswer, target: DiagnosisTarget, view: NodeView): Found {
  if (isWrongTarget(answer))
    return target.node === undefined && view.node === undefined
      ? serving(target, view, "it takes the fleet's key; its identity was not checked")
      : { verdict: "wrong-node", detail: "another node, or a later process, answers at this address" };
  if (answer.status !== 200)
    return {
      verdict: "not-ready",
      detail: `it answered the probe with ${answer.status} ${JSON.stringify(answer.text.slice(0, 100))}`,
    };
  const { node, probePublicKey } = target;
  const hasRecord = probePublicKey !== undefined && probePublicKey !== "";
  const fault = faultOfProof(answer, hasRecord ? { node, addr: target.addr, probePublicKey } : { node });
  if (fault === "malformed") return { verdict: "not-a-node", detail: "its answer to the probe is malformed" };
  if (fault !== undefined) return { verdict: "wrong-node", detail: faults[fault] };
  return {
    ...serving(target, view, hasRecord ? undefined : "its identity was not checked"),
    proved: hasRecord,
  };
}

const faults: Readonly<Record<Exclude<ProofFault, "malformed">, string>> = {
  "other-node": "another node answers at this address: the record is stale",
  "other-address": "it advertises another address than its record says",
  "other-process": "another process than the one that wrote the record answers: the record is stale",
};

function serving(target: DiagnosisTarget, view: NodeView, but: string | undefined): Found {
  const left = target.expiresMs === undefined ? 1 : target.expiresMs - Date.now();
  if (view.draining === true || view.runtime === "draining")
    return { verdict: "draining", detail: "it is being stopped" };
  if (view.runtime !== undefined && view.runtime !== "ready")
    return { verdict: "not-ready", detail: `what runs its cells is ${view.runtime}` };
  if (left <= 0)
    return {
      verdict: "not-ready",
      detail: `it answers, but its record ran out ${seconds(-left)} ago: it does not renew it`,
    };
  return { verdict: "ready", detail: but === undefined ? "it serves" : `it serves; ${but}` };
}

function failure(error: unknown, { expiresMs }: DiagnosisTarget): Found {
  if (error instanceof PeerUnreachableError) {
    const what = error.message.split("; ")[0];
    const goneMs = expiresMs === undefined ? 0 : Date.now() - expiresMs;
    return goneMs > 0
      ? { verdict: "gone", detail: `${what}, and its record ran out ${seconds(goneMs)} ago: it has stopped` }
      : {
          verdict: "unreachable",
          detail: `${what}: does it run, is the address right, is a firewall in between?`,
        };
  }
  if (error instanceof PeerNoAnswerError)
    return error.reason === notHttp
      ? { verdict: "not-a-node", detail: "what answers there speaks no HTTP" }
      : {
          verdict: "not-ready",
          detail: `it takes the connection but gives no usable answer (${error.reason})`,
        };
  // Records are parsed before: an address that is none is an empty one, or a flag's.
  if (error instanceof PeerOptionError)
    return { verdict: "unreachable", detail: "there is no HOST:PORT to reach it at" };
  throw error;
}
