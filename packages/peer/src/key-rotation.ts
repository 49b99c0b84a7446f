/**
 * The steps of a key rotation, in their order; between any two the fleet works and the rotation can be taken up again:
 *
 * 1. {@link publishNextKey}: nodes begin to accept a second key.
 * 2. {@link signWithNextKey}, once every live node accepts it: nodes begin to sign with it.
 * 3. {@link promoteNextKey}, once every live node signs with it: it becomes the fleet's key.
 * 4. {@link dropOldKey}, once nobody signs with the old one: nodes stop accepting it.
 *
 * A node shows in its record which key it signs with and which it accepts ({@link ShownKeys}). Callers without a record
 * read the keys anew every few seconds; leave them, and requests on their way, a minute before step 4.
 */
import { randomBytes } from "node:crypto";
import { FleetKey, fleetKeyBytes, formatFleetKey } from "./core/fleet-key.ts";
import {
  FleetKeyUncertainError,
  KeyRotationError,
  KeyRotationPendingError,
  type LaggingNode,
} from "./errors.ts";
import {
  bytesOf,
  type CreateFleetKeyOptions,
  type FleetKeys,
  fleetKeyKey,
  keyFingerprint,
  requireFleetKeys,
  settled,
} from "./fleet-keys.ts";
import type { FleetCallOptions, FleetStore, FleetWrite } from "./fleet-store.ts";
import { formatKeyRotation, type KeyRotation, keyRotationKey } from "./key-rotation-record.ts";
import type { NodeListing } from "./node-directory.ts";

/** A record that ran out this recently may be of a node whose clock is behind: farther than this, nodes cannot talk. */
const liveGraceMs = 30_000;

type Active = Exclude<KeyRotation, { phase: "done" }>;

/** Where a rotation is, in fingerprints. */
export interface RotationState {
  readonly phase: "none" | "accept" | "sign" | "retire";
  /** Of the key in `fleet/peer-auth.json`. */
  readonly current: string;
  /** Of the key that comes; undefined when no rotation is under way. */
  readonly next: string | undefined;
  /** Of the key that goes. */
  readonly previous: string | undefined;
}

/** Reads where the fleet is. @throws FleetKeyMissingError, and what {@link loadFleetKeys} throws */
export async function readRotation(
  store: FleetStore,
  options: FleetCallOptions = {},
): Promise<RotationState> {
  return stateOf(await requireFleetKeys(store, options));
}

/**
 * The live nodes that have not done what the phase asks for: to accept the next key (`accept`), to sign with it (`sign`,
 * `retire`). Empty without a rotation. Nodes whose record cannot be read, or does not show keys, count.
 */
export function laggingNodes(state: RotationState, listing: NodeListing, nowMs: number): LaggingNode[] {
  const { phase, next } = state;
  if (phase === "none" || next === undefined) return [];
  const records = [
    ...listing.live,
    ...listing.expired.filter((each) => each.expiresMs + liveGraceMs > nowMs),
  ];
  const lagging: LaggingNode[] = [];
  if (listing.truncated)
    lagging.push({ node: "(others)", reason: "are too many to look at: remove old records" });
  for (const { key } of listing.unreadable)
    lagging.push({ node: key, reason: "cannot be read: remove it if its node is gone" });
  for (const { node, peerKeys } of records) {
    if (peerKeys === undefined) lagging.push({ node, reason: "does not show its keys, so it cannot follow" });
    else if (!peerKeys.accepts.includes(next))
      lagging.push({ node, reason: "does not accept the next key yet" });
    else if (phase !== "accept" && peerKeys.signs !== next)
      lagging.push({ node, reason: "does not sign with the next key yet" });
  }
  return lagging;
}

/**
 * Step 1: makes a key and has it accepted.
 * @throws KeyRotationError (CELLKIT_PEER_KEY_ROTATION) when a rotation is under way; FleetKeyUncertainError; what the
 *   store throws
 */
export async function publishNextKey(
  store: FleetStore,
  { random = randomBytes, signal }: CreateFleetKeyOptions = {},
): Promise<RotationState> {
  const { current, rotation } = await requireFleetKeys(store, { signal });
  if (rotation !== undefined && rotation.record.phase !== "done")
    throw new KeyRotationError(`a rotation is under way (${rotation.record.phase}); finish it first`);
  const record: KeyRotation = {
    phase: "accept",
    id: Buffer.from(random(16)).toString("hex"),
    next: new FleetKey(random(fleetKeyBytes)),
    previous: current.key,
  };
  const body = bytesOf(formatKeyRotation(record));
  await applied(
    keyRotationKey,
    rotation === undefined
      ? await store.createIfAbsent(keyRotationKey, body, { signal })
      : await store.replaceIf(keyRotationKey, body, rotation.etag, { signal }),
    signal,
  );
  return readRotation(store, { signal });
}

/**
 * Step 2: has the next key signed with, once every live node accepts it.
 * @throws KeyRotationPendingError (CELLKIT_PEER_KEY_ROTATION_PENDING) with the nodes that do not; else as
 *   {@link publishNextKey}
 */
export async function signWithNextKey(
  store: FleetStore,
  listing: NodeListing,
  options: StepOptions = {},
): Promise<RotationState> {
  const { record, etag } = await ready(store, "accept", listing, options);
  await replaceRotation(store, { ...record, phase: "sign" }, etag, options);
  return readRotation(store, options);
}

/** Step 3: makes the next key the fleet's key, once every live node signs with it. @throws as {@link signWithNextKey} */
export async function promoteNextKey(
  store: FleetStore,
  listing: NodeListing,
  options: StepOptions = {},
): Promise<RotationState> {
  const { keys, record, etag } = await ready(store, "sign", listing, options);
  // An earlier try may have come this far.
  if (!keys.current.key.equals(record.next)) {
    const body = bytesOf(formatFleetKey(record.next));
    const write = await store.replaceIf(fleetKeyKey, body, keys.current.etag, { signal: options.signal });
    await applied(fleetKeyKey, write, options.signal);
  }
  await replaceRotation(store, { ...record, phase: "retire" }, etag, options);
  return readRotation(store, options);
}

/**
 * Step 4: has the old key refused from now on. Wait {@link oldKeyGraceMs} after the step before.
 * @throws as {@link signWithNextKey}
 */
export async function dropOldKey(
  store: FleetStore,
  listing: NodeListing,
  options: StepOptions = {},
): Promise<RotationState> {
  const { record, etag } = await ready(store, "retire", listing, options);
  await replaceRotation(store, { phase: "done", id: record.id }, etag, options);
  return readRotation(store, options);
}

/** How long the old key is worth accepting after the last node stopped signing with it: requests on their way (30 s), and callers that still have to read the new one. */
export const oldKeyGraceMs = 60_000;

/** Options of a step. */
export interface StepOptions extends FleetCallOptions {
  /** Milliseconds since the Unix epoch. @default Date.now */
  clock?: () => number;
}

async function ready(
  store: FleetStore,
  phase: Active["phase"],
  listing: NodeListing,
  { clock = Date.now, signal }: StepOptions,
): Promise<{ keys: FleetKeys; record: Active; etag: string }> {
  const keys = await requireFleetKeys(store, { signal });
  const { rotation } = keys;
  const found = rotation?.record.phase ?? "none";
  if (rotation === undefined || rotation.record.phase === "done" || rotation.record.phase !== phase)
    throw new KeyRotationError(`this step follows the phase ${phase}, but the rotation is at ${found}`);
  const lagging = laggingNodes(stateOf(keys), listing, clock());
  if (lagging.length > 0) throw new KeyRotationPendingError(lagging);
  return { keys, record: rotation.record, etag: rotation.etag };
}

async function replaceRotation(
  store: FleetStore,
  record: KeyRotation,
  etag: string,
  { signal }: FleetCallOptions,
): Promise<void> {
  const write = await store.replaceIf(keyRotationKey, bytesOf(formatKeyRotation(record)), etag, { signal });
  await applied(keyRotationKey, write, signal);
}

async function applied(key: string, write: FleetWrite, signal: AbortSignal | undefined): Promise<void> {
  const outcome = await settled(write, (because) => new FleetKeyUncertainError(key, because), { signal });
  if (outcome === "rejected")
    throw new KeyRotationError(`${key} was changed by somebody else meanwhile; look who rotates, then go on`);
}

function stateOf({ current, rotation }: FleetKeys): RotationState {
  const active = rotation === undefined || rotation.record.phase === "done" ? undefined : rotation.record;
  return {
    phase: active?.phase ?? "none",
    current: keyFingerprint(current.key),
    next: active === undefined ? undefined : keyFingerprint(active.next),
    previous: active === undefined ? undefined : keyFingerprint(active.previous),
  };
}
