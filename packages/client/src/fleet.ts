import { Dispatcher, errors, getGlobalDispatcher } from "undici";
import { Alarms } from "./alarms.ts";
import { type NotedCallOptions, noteCall } from "./attempts.ts";
import { Call } from "./call.ts";
import type { CallHost } from "./call-host.ts";
import type { OutcomeRules } from "./core/outcome.ts";
import { RetryBudget } from "./core/retry-budget.ts";
import type { NodeView } from "./fleet-node.ts";
import { FleetNodes } from "./fleet-nodes.ts";
import {
  type FleetDispatchOptions,
  type FleetOptions,
  type ResolvedRetry,
  resolveFleet,
  resolveRetry,
} from "./options.ts";

/**
 * A fleet as an undici dispatcher: `fleet.request({ method, path })` goes to a node that is well, and to another one
 * when that node drains. Requests for another origin than the authority go to undici's global dispatcher.
 *
 * @throws ConfigurationError (CELLKIT_CLIENT_CONFIG) from the constructor
 */
export class Fleet extends Dispatcher {
  readonly #nodes: FleetNodes;
  readonly #host: CallHost & { destroyedBy: Error | undefined };
  readonly #retry: ResolvedRetry;
  readonly #rules: OutcomeRules;
  readonly #origin: string;
  #activeCount = 0;
  #closing: Promise<void> | undefined;
  #destroying: Promise<void> | undefined;
  #idle: (() => void) | undefined;

  constructor(options: FleetOptions) {
    super();
    const resolved = resolveFleet(options);
    const { retry, marker, now, random } = resolved;
    this.#nodes = new FleetNodes(this, resolved);
    this.#retry = retry;
    this.#rules = { marker, retryStatuses: retry.retryStatuses };
    this.#origin = resolved.authority.origin;
    this.#host = {
      nodes: this.#nodes,
      alarms: new Alarms(now),
      budget: retry.budget === false ? undefined : new RetryBudget(retry.budget),
      now,
      random,
      waiting: new Set(),
      destroyedBy: undefined,
      onCallEnded: () => {
        this.#activeCount -= 1;
        if (this.#activeCount === 0) this.#idle?.();
      },
    };
  }

  /** The nodes as they are at this moment. */
  get nodes(): readonly NodeView[] {
    return this.#nodes.views();
  }

  /** Resolves when the first set of endpoints is known. @throws the signal's reason */
  ready(signal?: AbortSignal): Promise<void> {
    return this.#nodes.ready(signal);
  }

  /**
   * Sends a request, with `options.fleet` for this call alone. Always true: a fleet has no backpressure of its own.
   * @throws ConfigurationError (CELLKIT_CLIENT_CONFIG), through the handler, for a call option out of range
   */
  override dispatch(options: FleetDispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (typeof handler !== "object" || handler === null) {
      throw new errors.InvalidArgumentError("handler must be an object");
    }
    const { origin } = options;
    if (origin !== undefined && origin !== this.#origin && !this.#owns(origin)) {
      return getGlobalDispatcher().dispatch(options, handler);
    }
    const nowMs = this.#host.now();
    let call: Call;
    try {
      this.#refuseWhenClosed();
      const { fleet } = options;
      const retry = fleet === undefined ? this.#retry : resolveRetry(fleet, this.#retry);
      const rules =
        retry.retryStatuses === this.#rules.retryStatuses
          ? this.#rules
          : { marker: this.#rules.marker, retryStatuses: retry.retryStatuses };
      call = new Call(this.#host, options, handler, retry, rules, nowMs);
      if (fleet !== undefined) (fleet as NotedCallOptions)[noteCall]?.(call);
    } catch (error) {
      handler.onResponseError?.(null as never, error as Error);
      return true;
    }
    this.#host.budget?.started(nowMs);
    this.#activeCount += 1;
    call.start(nowMs);
    return true;
  }

  /** Lets calls under way finish, then closes connections, probes and the endpoint source. The same promise each time. */
  override close(): Promise<void>;
  override close(callback: () => void): void;
  override close(callback?: () => void): Promise<void> | void {
    this.#closing ??= this.#close();
    if (callback === undefined) return this.#closing;
    void this.#closing.then(callback);
  }

  /** Stops at once: calls under way fail with `error`, by default undici's `ClientDestroyedError`. */
  override destroy(error?: Error | null): Promise<void>;
  override destroy(callback: () => void): void;
  override destroy(error: Error | null, callback: () => void): void;
  override destroy(error?: Error | null | (() => void), callback?: () => void): Promise<void> | void {
    const done = typeof error === "function" ? error : callback;
    const reason = typeof error === "function" || error === undefined ? null : error;
    this.#destroying ??= this.#destroy(reason ?? new errors.ClientDestroyedError());
    if (done === undefined) return this.#destroying;
    void this.#destroying.then(done);
  }

  /** The same as `close()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    if (this.#activeCount > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    }
    await this.#nodes.close();
  }

  async #destroy(error: Error): Promise<void> {
    this.#closing ??= Promise.resolve();
    this.#host.destroyedBy = error;
    for (const call of [...this.#host.waiting]) call.onDestroyed(error);
    await this.#nodes.destroy(error);
  }

  #refuseWhenClosed(): void {
    if (this.#host.destroyedBy !== undefined) throw new errors.ClientDestroyedError();
    if (this.#closing !== undefined) throw new errors.ClientClosedError();
  }

  #owns(origin: string | URL): boolean {
    return URL.canParse(String(origin)) && new URL(origin).origin === this.#origin;
  }
}
