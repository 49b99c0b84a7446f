// The tunnels to one node for one kind of call, as an undici dispatcher: each tunnel carries one call at a time, and an
// idle one is used again. undici's Client does the HTTP; it looks for a FIN before it writes on a kept connection, and
// it never sends a request twice.

import type { Duplex } from "node:stream";
import { Client, Dispatcher } from "undici";

/** How the tunnels of a route are kept. */
export interface TunnelRouteOptions {
  /** Most idle tunnels that are kept. */
  idleCount: number;
  /** How long a tunnel may be idle, if the owner does not ask for less. */
  idleMs: number;
  /** Told when the route has no tunnel left. */
  emptied: () => void;
}

/** No owner keeps a tunnel that was idle for 30 s; a call must not be written in that instant. */
export const maxIdleMs = 29_000;
const maxAnswerHeadBytes = 64 * 1024;

export class TunnelRoute extends Dispatcher {
  readonly #dial: () => Promise<Duplex>;
  readonly #options: TunnelRouteOptions;
  readonly #clients = new Set<Client>();
  /** Clients without a call, the one used last at the end. */
  readonly #idle: Client[] = [];
  #closed = false;

  constructor(dial: () => Promise<Duplex>, options: TunnelRouteOptions) {
    super();
    this.#dial = dial;
    this.#options = options;
  }

  get tunnelCount(): number {
    return this.#clients.size;
  }

  get idleCount(): number {
    return this.#idle.length;
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const client = this.#idle.pop() ?? this.#add();
    // True only if the call ended within the dispatch: else `drain` tells when it did.
    if (client.dispatch(options, handler)) this.#release(client);
    return true;
  }

  /** Ends idle tunnels and, once they are answered, the others. */
  override close(): Promise<void>;
  override close(callback: () => void): void;
  override close(callback?: () => void): Promise<void> | void {
    this.#closed = true;
    const done = Promise.all([...this.#clients].map((client) => client.close())).then(() => undefined);
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
    const done = Promise.all([...this.#clients].map((client) => client.destroy(error))).then(() => undefined);
    if (callback === undefined) return done;
    done.then(callback, callback);
  }

  #add(): Client {
    const client = new Client("http://cell", {
      connect: (_options, callback) => {
        this.#dial().then(
          // undici asks no more of a connection than a Duplex has; its type is narrower than its need.
          (tunnel) => callback(null, tunnel as never),
          (error: Error) => callback(error, null),
        );
      },
      pipelining: 1,
      keepAliveTimeout: this.#options.idleMs,
      keepAliveMaxTimeout: maxIdleMs,
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: maxAnswerHeadBytes,
    });
    this.#clients.add(client);
    client.on("drain", () => this.#release(client));
    client.on("disconnect", () => this.#disconnected(client));
    return client;
  }

  #release(client: Client): void {
    if (this.#closed || !this.#clients.has(client)) return;
    if (this.#idle.length >= this.#options.idleCount) this.#drop(client);
    else this.#idle.push(client);
  }

  #disconnected(client: Client): void {
    const at = this.#idle.indexOf(client);
    if (at < 0) return;
    this.#idle.splice(at, 1);
    this.#drop(client);
  }

  #drop(client: Client): void {
    this.#clients.delete(client);
    client.destroy().catch(() => undefined);
    if (this.#clients.size === 0) this.#options.emptied();
  }
}
