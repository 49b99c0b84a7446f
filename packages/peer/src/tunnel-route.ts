// The tunnels to one node for one kind of call, as an undici dispatcher: each tunnel carries one call at a time, and an
// idle one is used again. undici's Client does the HTTP; it looks for a FIN before it writes on a kept connection, and
// it never sends a request twice. What comes before a call is written, or behind the end of an answer, ends the tunnel.

import type { Duplex } from "node:stream";
import { Client, Dispatcher } from "undici";
import { PeerUnreachableError } from "./errors.ts";
import { maxIdleMs } from "./wire.ts";

/** How the tunnels of a route are kept. */
export interface TunnelRouteOptions {
  /** The node's address, for messages. */
  where: string;
  /** Most idle tunnels that are kept. */
  idleCount: number;
  /** How long a tunnel may be idle, if the owner does not ask for less. */
  idleMs: number;
  /** Told when the route has no tunnel left. */
  emptied: () => void;
}

/** What a call may say of the tunnel that is dialled for it, beside what undici knows. */
export interface DialBounds {
  /** Gives up the dialling. */
  signal?: unknown;
  /** When the tunnel has to be there, by `performance.now()`. */
  dialEndMs?: number;
}

const maxAnswerHeadBytes = 64 * 1024;

/** An undici client: one tunnel, or none as long as it was not dialled. */
interface Kept {
  readonly client: Client;
  /** The call that has it, undefined when it is idle. */
  bounds: DialBounds | undefined;
  /** Whether a tunnel may be dialled for this call. */
  mayDial: boolean;
  dialling: AbortController | undefined;
}

export class TunnelRoute extends Dispatcher {
  readonly #dial: (signal: AbortSignal) => Promise<Duplex>;
  readonly #options: TunnelRouteOptions;
  readonly #kept = new Set<Kept>();
  /** Those without a call, the one used last at the end. */
  readonly #idle: Kept[] = [];
  #closed = false;

  constructor(dial: (signal: AbortSignal) => Promise<Duplex>, options: TunnelRouteOptions) {
    super();
    this.#dial = dial;
    this.#options = options;
  }

  get tunnelCount(): number {
    return this.#kept.size;
  }

  get idleCount(): number {
    return this.#idle.length;
  }

  override dispatch(
    options: Dispatcher.DispatchOptions & DialBounds,
    handler: Dispatcher.DispatchHandler,
  ): boolean {
    const kept = this.#idle.pop() ?? this.#add();
    kept.bounds = options;
    kept.mayDial = true;
    const ended = kept.client.dispatch(options, handler);
    // When it ends later, `drain` tells; for a call that undici takes no notice of, nothing does.
    if (ended || kept.client.stats.size === 0) this.#release(kept);
    return true;
  }

  /** Ends idle tunnels and, once they are answered, the others. */
  override close(): Promise<void>;
  override close(callback: () => void): void;
  override close(callback?: () => void): Promise<void> | void {
    this.#closed = true;
    const done = Promise.all([...this.#kept].map(({ client }) => client.close())).then(() => undefined);
    if (callback === undefined) return done;
    done.then(callback, callback);
  }

  /** Cuts every tunnel; calls in them fail. */
  override destroy(): Promise<void>;
  override destroy(error: Error | null): Promise<void>;
  override destroy(callback: () => void): void;
  override destroy(error: Error | null, callback: () => void): void;
  override destroy(first?: Error | null | (() => void), second?: () => void): Promise<void> | void {
    const error = typeof first === "function" ? null : (first ?? null);
    const callback = typeof first === "function" ? first : second;
    this.#closed = true;
    const all = [...this.#kept].map(({ client, dialling }) => {
      const destroyed = client.destroy(error);
      dialling?.abort();
      return destroyed;
    });
    const done = Promise.all(all).then(() => undefined);
    if (callback === undefined) return done;
    done.then(callback, callback);
  }

  #add(): Kept {
    const client = new Client("http://cell", {
      connect: (_options, callback) => {
        this.#connect(kept).then(
          // undici asks no more of a connection than a Duplex has; its type is narrower than its need.
          (tunnel) => callback(null, tunnel as never),
          (error: unknown) => callback(error instanceof Error ? error : this.#unreachable(error), null),
        );
      },
      pipelining: 1,
      keepAliveTimeout: this.#options.idleMs,
      keepAliveMaxTimeout: maxIdleMs,
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: maxAnswerHeadBytes,
    });
    const kept: Kept = { client, bounds: undefined, mayDial: false, dialling: undefined };
    this.#kept.add(kept);
    client.on("drain", () => this.#release(kept));
    client.on("disconnect", () => this.#disconnected(kept));
    return kept;
  }

  /** Dials once for each call: undici would go on for as long as tunnels end before it has written to them. */
  async #connect(kept: Kept): Promise<Duplex> {
    const { bounds } = kept;
    if (!kept.mayDial || bounds === undefined)
      throw this.#unreachable("the tunnel ended before the call was sent");
    kept.mayDial = false;
    const controller = new AbortController();
    kept.dialling = controller;
    const signal = bounds.signal instanceof AbortSignal ? bounds.signal : undefined;
    const abort = () => controller.abort(signal?.reason);
    const late = () => controller.abort(this.#unreachable("no tunnel before the end of the call's time"));
    const { dialEndMs } = bounds;
    const timer =
      dialEndMs === undefined ? undefined : setTimeout(late, Math.max(0, dialEndMs - performance.now()));
    signal?.addEventListener("abort", abort, { once: true });
    try {
      if (signal?.aborted) abort();
      return await this.#dial(controller.signal);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      kept.dialling = undefined;
    }
  }

  #unreachable(reason: unknown): PeerUnreachableError {
    return new PeerUnreachableError(this.#options.where, String(reason));
  }

  #release(kept: Kept): void {
    if (kept.bounds === undefined || this.#closed || !this.#kept.has(kept)) return;
    kept.bounds = undefined;
    if (this.#idle.length >= this.#options.idleCount || !kept.client.stats.connected) this.#drop(kept);
    else this.#idle.push(kept);
  }

  #disconnected(kept: Kept): void {
    const at = this.#idle.indexOf(kept);
    if (at < 0) return;
    this.#idle.splice(at, 1);
    this.#drop(kept);
  }

  #drop(kept: Kept): void {
    this.#kept.delete(kept);
    kept.dialling?.abort();
    kept.client.destroy().catch(() => undefined);
    if (this.#kept.size === 0) this.#options.emptied();
  }
}
