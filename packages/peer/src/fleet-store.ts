/**
 * What this package needs of the fleet's object store. A `Bucket` of `@cellkit/bucket` satisfies it by its shape, and so
 * does anything else with conditional writes. Keys are relative to the fleet's prefix.
 */

/** An object as it was read. */
export interface FleetObject {
  readonly body: Uint8Array;
  /** Opaque; another content has another one. */
  readonly etag: string;
}

/** A write that took effect. */
export interface FleetWriteApplied {
  readonly kind: "applied";
  /** Of what was written. */
  readonly etag: string;
}

/** A write whose condition did not hold: nothing was changed. */
export interface FleetWriteRejected {
  readonly kind: "rejected";
}

/** A write that may or may not have taken effect, now or later. It is neither a success nor a failure. */
export interface FleetWriteAmbiguous {
  readonly kind: "ambiguous";
  /** What stood in the way of an answer. */
  readonly cause: Error;
  /** Finds out by reading back. Throws when that cannot be told. */
  settle(options?: FleetCallOptions): Promise<FleetWriteApplied | FleetWriteRejected>;
}

/** Three outcomes, not two. */
export type FleetWrite = FleetWriteApplied | FleetWriteRejected | FleetWriteAmbiguous;

/** Options of every call. */
export interface FleetCallOptions {
  signal?: AbortSignal | undefined;
}

/** The store. What it throws passes through to the caller unchanged. */
export interface FleetStore {
  /** Reads an object; undefined when there is none. Refuses, by throwing, a body over `maxBytes`. */
  get(
    key: string,
    options?: FleetCallOptions & { maxBytes?: number | undefined },
  ): Promise<FleetObject | undefined>;
  /** Writes an object if the key has none. */
  createIfAbsent(key: string, body: Uint8Array, options?: FleetCallOptions): Promise<FleetWrite>;
  /** Writes an object if the key has one with exactly this ETag. */
  replaceIf(key: string, body: Uint8Array, etag: string, options?: FleetCallOptions): Promise<FleetWrite>;
  /** All keys that begin with `prefix`. The ETag, where the store tells it, spares reading what is known. */
  list(
    prefix: string,
    options?: FleetCallOptions,
  ): AsyncIterable<{ readonly key: string; readonly etag?: string; readonly modifiedMs?: number }>;
}

/** A store for a node, which takes its own record away when it stops. */
export interface NodeStore extends FleetStore {
  /** Removes an object; absent is fine. */
  delete(key: string, options?: FleetCallOptions): Promise<void>;
}
