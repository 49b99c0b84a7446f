/** The fleet's key in the store: read, or made by the first node. Two objects: the key, and a rotation's second one. */
import { randomBytes } from "node:crypto";
import { FleetKey, fleetKeyBytes, formatFleetKey, parseFleetKey } from "./core/fleet-key.ts";
import {
  FleetKeyError,
  FleetKeyMissingError,
  FleetKeyUncertainError,
  KeyRotationError,
  type PeerError,
} from "./errors.ts";
import type { FleetCallOptions, FleetStore, FleetWrite } from "./fleet-store.ts";
import { type KeyRotation, keyRotationKey, parseKeyRotation } from "./key-rotation-record.ts";
import type { ShownKeys } from "./node-record.ts";

/** Object key of the fleet's key, under the fleet's prefix. */
export const fleetKeyKey = "fleet/peer-auth.json";

/** Longer objects are refused unread. */
const maxObjectBytes = 4_096;

/** Two objects are not read at one moment: what does not fit together is read again. */
const maxReads = 3;

/** The keys that hold at this moment. */
export interface FleetKeys {
  /** One, or two during a rotation. The first signs, all are accepted. */
  readonly keys: readonly [FleetKey, ...FleetKey[]];
  /** The object `fleet/peer-auth.json` by itself, with its ETag. */
  readonly current: { readonly key: FleetKey; readonly etag: string };
  /** The object `fleet/peer-auth-next.json`; undefined when there is none. */
  readonly rotation: { readonly record: KeyRotation; readonly etag: string } | undefined;
}

/** Options of {@link createOrLoadFleetKey}. */
export interface CreateFleetKeyOptions extends FleetCallOptions {
  /** @default randomBytes of node:crypto */
  random?: (byteCount: number) => Uint8Array;
}

/**
 * Reads the keys; undefined when the fleet has none yet.
 * @throws FleetKeyError (CELLKIT_PEER_FLEET_KEY) or KeyRotationError (CELLKIT_PEER_KEY_ROTATION) for an object that is
 *   invalid: it is never overwritten; what the store throws
 */
export async function loadFleetKeys(
  store: FleetStore,
  { signal }: FleetCallOptions = {},
): Promise<FleetKeys | undefined> {
  for (let read = 1; ; read += 1) {
    // The rotation first: it says which keys the other object may hold from then on.
    const next = await store.get(keyRotationKey, { maxBytes: maxObjectBytes, signal });
    const current = await store.get(fleetKeyKey, { maxBytes: maxObjectBytes, signal });
    const rotation =
      next === undefined ? undefined : { record: parseKeyRotation(textOf(next.body)), etag: next.etag };
    if (current === undefined) {
      if (rotation === undefined || rotation.record.phase === "done") return undefined;
      throw new FleetKeyMissingError(fleetKeyKey);
    }
    const key = parseFleetKey(textOf(current.body));
    const keys = keysOf(key, rotation?.record);
    if (keys !== undefined) return { keys, current: { key, etag: current.etag }, rotation };
    if (read === maxReads)
      throw new KeyRotationError(
        `${keyRotationKey} is of a rotation that does not begin with the key in ${fleetKeyKey}; remove the one that somebody put there by hand`,
      );
  }
}

/**
 * Reads the keys for a tool, which never makes one.
 * @throws FleetKeyMissingError (CELLKIT_PEER_FLEET_KEY_MISSING), and what {@link loadFleetKeys} throws
 */
export async function requireFleetKeys(
  store: FleetStore,
  options: FleetCallOptions = {},
): Promise<FleetKeys> {
  const keys = await loadFleetKeys(store, options);
  if (keys === undefined) throw new FleetKeyMissingError(fleetKeyKey);
  return keys;
}

/**
 * Reads the keys, or makes the fleet's first one. Of many nodes that start at once one wins, and all use its key.
 * @throws FleetKeyUncertainError (CELLKIT_PEER_FLEET_KEY_UNCERTAIN) when the store does not tell whether a key was
 *   written: neither outcome may be assumed; FleetKeyMissingError when the winner's key is gone; what
 *   {@link loadFleetKeys} throws
 */
export async function createOrLoadFleetKey(
  store: FleetStore,
  options: CreateFleetKeyOptions = {},
): Promise<FleetKeys> {
  const { random = randomBytes, signal } = options;
  const found = await loadFleetKeys(store, { signal });
  if (found !== undefined) return found;
  const key = new FleetKey(random(fleetKeyBytes));
  const write = await store.createIfAbsent(fleetKeyKey, bytesOf(formatFleetKey(key)), { signal });
  await settled(write, (because) => new FleetKeyUncertainError(fleetKeyKey, because), { signal });
  // Ours or the winner's: what is there counts, and a rotation may have begun.
  return requireFleetKeys(store, { signal });
}

/**
 * What may be shown of a key: 16 hex digits that tell keys apart and lead nobody to one. A fleet's nodes show them in
 * their records so that a rotation can be followed.
 */
export function keyFingerprint(key: FleetKey): string {
  return key.macHex("cellkit-peer-key-fingerprint-v1").slice(0, 16);
}

/** The keys as a node's record shows them. */
export function shownKeys(keys: readonly [FleetKey, ...FleetKey[]]): ShownKeys {
  return { signs: keyFingerprint(keys[0]), accepts: keys.map(keyFingerprint) };
}

/** A conditional write of a key that came back unsure is settled, or fatal. @internal */
export async function settled(
  write: FleetWrite,
  uncertain: (because: ErrorOptions) => PeerError,
  { signal }: FleetCallOptions,
): Promise<"applied" | "rejected"> {
  if (write.kind !== "ambiguous") return write.kind;
  try {
    return (await write.settle({ signal })).kind;
  } catch (cause) {
    throw uncertain({ cause });
  }
}

/** Undefined when the two objects do not belong together. */
function keysOf(current: FleetKey, rotation: KeyRotation | undefined): FleetKeys["keys"] | undefined {
  if (rotation === undefined || rotation.phase === "done") return [current];
  const { next, previous, phase } = rotation;
  const isPrevious = current.equals(previous);
  const isNext = current.equals(next);
  if (phase === "accept") return isPrevious ? [previous, next] : undefined;
  if (phase === "sign") return isPrevious || isNext ? [next, previous] : undefined;
  return isNext ? [next, previous] : undefined;
}

function textOf(body: Uint8Array): string {
  if (body.byteLength > maxObjectBytes) throw new FleetKeyError(`has over ${maxObjectBytes} bytes`);
  return new TextDecoder().decode(body);
}

/** @internal */
export function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
