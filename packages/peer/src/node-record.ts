/**
 * The record by which a node is found: `nodes/<session id>.json`, as every reader of the protocol takes it. Members that
 * only we write (`extensions`, `peer_keys`, `road_alias`, `serving`) are ignored by others, and read strictly here.
 */
import { z } from "zod";
import { NodeRecordError } from "./errors.ts";
import { readPeerAddress } from "./peer-address.ts";

/** Where the records are. */
export const nodeRecordPrefix = "nodes/";

/** A longer record is refused unread. A complete one of ours has about 1,200 bytes. */
export const maxNodeRecordBytes = 65_536;

/** What a node says of its load. Every number is a non-negative integer. */
export interface NodeLoad {
  /** When it was measured, in milliseconds since the Unix epoch, by the node's clock. */
  readonly sampledMs: number;
  readonly residentCells: number;
  readonly hostWebsockets: number;
  readonly rssBytes: number;
  readonly inUseBytes: number | null;
  /** 100 for each percent of one CPU. */
  readonly cpuPercentX100: number;
  readonly openFds: number;
  readonly fdLimit: number;
  readonly pressured: boolean;
  readonly shedCells: number;
  readonly restoring: number;
}

/** The fleet keys of a node, by their fingerprints: what a rotation looks at before its next step. */
export interface ShownKeys {
  /** The key it signs with. */
  readonly signs: string;
  /** All keys it accepts, that one among them. */
  readonly accepts: readonly string[];
}

/** A node as its record describes it. */
export interface NodeRecord {
  /** The session id, and the identity that requests to it are signed for. */
  readonly node: string;
  /** `host:port` of its internal listener; empty when the record does not say. */
  readonly addr: string;
  /** By the node's clock, in milliseconds since the Unix epoch. */
  readonly expiresMs: number;
  /** Generation of the protocol that it speaks: 2 or 5. Any other number means: do not call. */
  readonly peerProtocol: number;
  /** Ed25519 public key of this process, 64 hex digits; empty when the record does not say. */
  readonly probePublicKey: string;
  readonly load?: NodeLoad | undefined;
  /** Of this protocol's extensions, those it speaks: `records-1`. */
  readonly extensions: readonly string[];
  readonly peerKeys?: ShownKeys | undefined;
  /** Loopback address under which the nodes' relays find it. */
  readonly roadAlias?: string | undefined;
  /** False while it starts or is being stopped: it answers as well as it can, and others had better be called. @default true */
  readonly serving?: boolean | undefined;
}

const whole = z.int().min(0);
const identity = z.string().regex(/^[A-Za-z0-9_.-]{1,128}$/, "is no node name");
const fingerprint = z.string().regex(/^[0-9a-f]{16}$/, "is no key fingerprint");
const hostPort = z
  .string()
  .max(261)
  .refine((text) => readPeerAddress(text) !== undefined, "is no HOST:PORT");

const loadSchema = z.object({
  sampled_ms: whole,
  resident_cells: whole,
  host_websockets: whole,
  rss_bytes: whole,
  in_use_bytes: whole.nullish(),
  cpu_percent_x100: whole,
  open_fds: whole,
  fd_limit: whole,
  pressured: z.boolean(),
  shed_cells: whole,
  restoring: whole.default(0),
});

const recordSchema = z.object({
  node: identity,
  expires_ms: whole,
  addr: z.union([z.literal(""), hostPort]).default(""),
  probe_public_key: z.union([z.literal(""), z.string().regex(/^[0-9a-f]{64}$/, "is no key")]).default(""),
  peer_protocol: whole.max(65_535).default(0),
  load: loadSchema.optional(),
  extensions: z
    .array(z.string().regex(/^[a-z0-9-]{1,64}$/))
    .max(32)
    .default([]),
  peer_keys: z.object({ signs: fingerprint, accepts: z.array(fingerprint).min(1).max(4) }).optional(),
  road_alias: z.ipv4().startsWith("127.", "is no loopback address").optional(),
  serving: z.boolean().default(true),
});

/** The object key of a node's record. */
export function nodeRecordKey(node: string): string {
  return `${nodeRecordPrefix}${node}.json`;
}

/** A record as text, complete as every reader wants it: `load` and the generation included. */
export function formatNodeRecord(record: NodeRecord): string {
  const { load, peerKeys, roadAlias, serving = true } = record;
  return JSON.stringify({
    node: record.node,
    expires_ms: record.expiresMs,
    addr: record.addr,
    probe_public_key: record.probePublicKey,
    peer_protocol: record.peerProtocol,
    ownership_index_generation: record.probePublicKey,
    ...(load === undefined ? {} : { load: wireLoad(load) }),
    extensions: record.extensions,
    ...(peerKeys === undefined ? {} : { peer_keys: peerKeys }),
    ...(roadAlias === undefined ? {} : { road_alias: roadAlias }),
    ...(serving ? {} : { serving }),
  });
}

/**
 * Reads the text of the object `key`.
 * @throws NodeRecordError (CELLKIT_PEER_NODE_RECORD) for text that no reader may rely on, and for a record that stands
 *   under another node's name
 */
export function parseNodeRecord(key: string, body: Uint8Array): NodeRecord {
  if (body.byteLength > maxNodeRecordBytes)
    throw new NodeRecordError(key, `has over ${maxNodeRecordBytes} bytes`);
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch (cause) {
    throw new NodeRecordError(key, "is not JSON", { cause });
  }
  const parsed = recordSchema.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const where = issue === undefined || issue.path.length === 0 ? "the whole" : issue.path.join(".");
    throw new NodeRecordError(key, `cannot be read: ${where}: ${issue?.message ?? "invalid"}`);
  }
  const { data } = parsed;
  if (nodeRecordKey(data.node) !== key) throw new NodeRecordError(key, `is the record of ${data.node}`);
  return {
    node: data.node,
    addr: data.addr,
    expiresMs: data.expires_ms,
    peerProtocol: data.peer_protocol,
    probePublicKey: data.probe_public_key,
    extensions: data.extensions,
    ...(data.load === undefined ? {} : { load: ownLoad(data.load) }),
    ...(data.peer_keys === undefined ? {} : { peerKeys: data.peer_keys }),
    ...(data.road_alias === undefined ? {} : { roadAlias: data.road_alias }),
    ...(data.serving ? {} : { serving: false }),
  };
}

/** The rule of all readers: a record is in force until its own time, by the reader's clock. */
export function isLive(record: Pick<NodeRecord, "expiresMs">, nowMs: number): boolean {
  return record.expiresMs > nowMs;
}

function wireLoad(load: NodeLoad): z.output<typeof loadSchema> {
  return {
    sampled_ms: load.sampledMs,
    resident_cells: load.residentCells,
    host_websockets: load.hostWebsockets,
    rss_bytes: load.rssBytes,
    in_use_bytes: load.inUseBytes,
    cpu_percent_x100: load.cpuPercentX100,
    open_fds: load.openFds,
    fd_limit: load.fdLimit,
    pressured: load.pressured,
    shed_cells: load.shedCells,
    restoring: load.restoring,
  };
}

function ownLoad(load: z.output<typeof loadSchema>): NodeLoad {
  return {
    sampledMs: load.sampled_ms,
    residentCells: load.resident_cells,
    hostWebsockets: load.host_websockets,
    rssBytes: load.rss_bytes,
    inUseBytes: load.in_use_bytes ?? null,
    cpuPercentX100: load.cpu_percent_x100,
    openFds: load.open_fds,
    fdLimit: load.fd_limit,
    pressured: load.pressured,
    shedCells: load.shed_cells,
    restoring: load.restoring,
  };
}
