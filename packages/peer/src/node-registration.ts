/**
 * A node's own record over its life: written at the start, renewed, taken away at the stop. The record is advisory, it
 * fences nobody: it says where a node is and until when. Every write is conditional, so that a late one harms nobody.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { NodeRecordError, NodeRecordLostError, NodeRecordUncertainError, PeerOptionError } from "./errors.ts";
import type { FleetWrite, NodeStore } from "./fleet-store.ts";
import {
  formatNodeRecord,
  maxNodeRecordBytes,
  type NodeRecord,
  nodeRecordKey,
  parseNodeRecord,
} from "./node-record.ts";

/** What a node says of itself at one moment; asked anew for every write. Its name and key must stay what they are. */
export type NodeDescription = Omit<NodeRecord, "expiresMs">;

/** Options of {@link registerNode}. */
export interface RegisterNodeOptions {
  /** How long the record is in force after each write, 1,000 to 3,600,000. @default 10_000 */
  ttlMs?: number;
  /** Milliseconds since the Unix epoch. @default Date.now */
  clock?: () => number;
  /** Ends the first write. */
  signal?: AbortSignal | undefined;
  /** Hears once that another process has taken the name; nothing is renewed after it. @default nobody */
  onLost?: (error: NodeRecordLostError) => void;
  /** Hears of every renewal that failed; it is tried again, sooner than usual. @default nobody */
  onFailure?: (error: unknown) => void;
}

/** Renewals in one life of a record; two may fail in a row before it runs out. */
const renewalsPerLife = 3;

/** Pause before a renewal that failed is tried again: several tries fit into what is left of the record's life. */
const retryMs = 500;

/** Bounds of one write, as the protocol gives them. */
const attemptMs = { least: 250, most: 2_500 } as const;

/** How often one registration or renewal reads back and writes again when others write too. */
const maxRounds = 4;

/**
 * Writes the record of a node, replacing one that a former process of that name left, and renews it until `close()`.
 * @throws NodeRecordError (CELLKIT_PEER_NODE_RECORD) for a description that readers would refuse,
 *   NodeRecordUncertainError (CELLKIT_PEER_NODE_RECORD_UNCERTAIN), PeerOptionError, what the store throws, and the
 *   signal's reason
 */
export async function registerNode(
  store: NodeStore,
  describe: () => NodeDescription,
  options: RegisterNodeOptions = {},
): Promise<NodeRegistration> {
  const { ttlMs = 10_000, clock = Date.now, signal, onLost, onFailure } = options;
  if (!Number.isInteger(ttlMs) || ttlMs < 1_000 || ttlMs > 3_600_000)
    throw new PeerOptionError("ttlMs", "must be a whole number from 1000 to 3600000");
  const registration = new NodeRegistration(store, describe, {
    ttlMs,
    clock,
    onLost: onLost ?? (() => {}),
    onFailure: onFailure ?? (() => {}),
  });
  await registration.begin(signal);
  return registration;
}

/** A registered node; made by {@link registerNode}. */
export class NodeRegistration implements AsyncDisposable {
  readonly #store: NodeStore;
  readonly #describe: () => NodeDescription;
  readonly #options: Required<Omit<RegisterNodeOptions, "signal">>;
  readonly #key: string;
  readonly #node: string;
  readonly #generation: string;
  readonly #stopping = new AbortController();
  /** Of the record as this process wrote it last. */
  #etag: string | undefined;
  #liveUntilMs = 0;
  #lost = false;
  #writing: Promise<void> = Promise.resolve();
  #running: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  /** @internal use {@link registerNode} */
  constructor(
    store: NodeStore,
    describe: () => NodeDescription,
    options: Required<Omit<RegisterNodeOptions, "signal">>,
  ) {
    this.#store = store;
    this.#describe = describe;
    this.#options = options;
    const { node, probePublicKey } = describe();
    this.#node = node;
    this.#generation = probePublicKey;
    this.#key = nodeRecordKey(node);
  }

  /** The record was written and its life, counted from before that write, is not over. On the monotonic clock. */
  get live(): boolean {
    return !this.#lost && performance.now() < this.#liveUntilMs;
  }

  /** @internal the first write; then the renewals begin */
  async begin(signal: AbortSignal | undefined): Promise<void> {
    // What no reader would take must not get into the store.
    parseNodeRecord(this.#key, this.#format(0));
    await this.#write(signal, "take");
    this.#running = this.#run();
  }

  /**
   * Writes the record now: when what it says has changed, as after a key was read. Renewals go on as before.
   * @throws NodeRecordLostError, NodeRecordUncertainError, what the store throws, and the signal's reason
   */
  async renew(options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    if (this.#lost || this.#closed !== undefined) throw new NodeRecordLostError(this.#node);
    await this.#serially(() => this.#write(options.signal, "renew"));
  }

  /** Ends the renewals and takes the record away if it is still this process's. Idempotent; rejects with what the store throws. */
  close(): Promise<void> {
    this.#closed ??= this.#end();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    let waitMs = this.#options.ttlMs / renewalsPerLife;
    while (!signal.aborted && !this.#lost) {
      try {
        await sleep(waitMs, undefined, { signal, ref: false });
        const leftMs = this.#liveUntilMs - performance.now();
        const boundMs = Math.round(Math.min(Math.max(leftMs / 2, attemptMs.least), attemptMs.most));
        await this.#serially(() =>
          this.#write(AbortSignal.any([signal, AbortSignal.timeout(boundMs)]), "renew"),
        );
        waitMs = this.#options.ttlMs / renewalsPerLife;
      } catch (error) {
        if (signal.aborted || this.#lost) return;
        this.#options.onFailure(error);
        waitMs = Math.min(retryMs, this.#options.ttlMs / renewalsPerLife);
      }
    }
  }

  /** One write at a time: each needs the ETag of the one before. */
  #serially(write: () => Promise<void>): Promise<void> {
    const next = this.#writing.then(write, write);
    this.#writing = next.catch(() => {});
    return next;
  }

  async #write(signal: AbortSignal | undefined, how: "take" | "renew"): Promise<void> {
    for (let round = 0; round < maxRounds; round++) {
      signal?.throwIfAborted();
      const anchorMs = performance.now();
      const expiresMs = Math.round(this.#options.clock() + this.#options.ttlMs);
      const body = this.#format(expiresMs);
      const write = await this.#put(body, signal);
      if (write.kind === "applied") {
        this.#etag = write.etag;
        this.#liveUntilMs = anchorMs + this.#options.ttlMs;
        return;
      }
      await this.#readBack(how, signal);
    }
    throw new NodeRecordUncertainError(this.#node);
  }

  #format(expiresMs: number): Uint8Array {
    return new TextEncoder().encode(formatNodeRecord({ ...this.#describe(), expiresMs }));
  }

  #put(body: Uint8Array, signal: AbortSignal | undefined): Promise<FleetWrite> {
    return this.#etag === undefined
      ? this.#store.createIfAbsent(this.#key, body, { signal })
      : this.#store.replaceIf(this.#key, body, this.#etag, { signal });
  }

  /**
   * Something else is there than was thought: a write of ours whose answer was lost, a former process's record, nothing,
   * or a record that another process wrote over ours. Each but the last is written over.
   */
  async #readBack(how: "take" | "renew", signal: AbortSignal | undefined): Promise<void> {
    const there = await this.#store.get(this.#key, { maxBytes: maxNodeRecordBytes, signal });
    if (there !== undefined && how === "renew" && !this.#isOurs(there.body)) {
      this.#lost = true;
      const error = new NodeRecordLostError(this.#node);
      this.#options.onLost(error);
      throw error;
    }
    this.#etag = there?.etag;
  }

  #isOurs(body: Uint8Array): boolean {
    try {
      return parseNodeRecord(this.#key, body).probePublicKey === this.#generation;
    } catch (error) {
      if (error instanceof NodeRecordError) return false;
      throw error;
    }
  }

  async #end(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#writing;
    this.#liveUntilMs = 0;
    if (this.#lost) return;
    // First out of force by a conditional write: a successor's record is not ours to delete.
    for (let round = 0; round < maxRounds && this.#etag !== undefined; round++) {
      const body = this.#format(0);
      const write = await this.#store.replaceIf(this.#key, body, this.#etag);
      if (write.kind === "applied") {
        await this.#store.delete(this.#key);
        return;
      }
      const there = await this.#store.get(this.#key, { maxBytes: maxNodeRecordBytes });
      if (there === undefined || !this.#isOurs(there.body)) return;
      this.#etag = there.etag;
    }
    throw new NodeRecordUncertainError(this.#node);
  }
}
