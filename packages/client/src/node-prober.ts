// Wakes each node when its state asks for it, and sends the health probes.
import type { Transition } from "./core/node-state.ts";
import type { FleetNode } from "./fleet-node.ts";
import { probeHealth } from "./health-probe.ts";
import type { ResolvedFleet } from "./options.ts";

/** A server that closes every connection is not probed more often than this for it. */
const HINT_GAP_MS = 1_000;

/** Internal: timers and probes of a fleet's nodes. None of them keeps the process alive. */
export class NodeProber {
  readonly #options: ResolvedFleet;
  readonly #signal: AbortSignal;
  readonly #tell: (node: FleetNode, transition: Transition) => void;
  readonly #timers = new Map<FleetNode, NodeJS.Timeout>();
  readonly #hintedAtMs = new WeakMap<FleetNode, number>();

  /** @param signal aborted when the fleet closes: nothing is told after it */
  constructor(
    options: ResolvedFleet,
    signal: AbortSignal,
    tell: (node: FleetNode, transition: Transition) => void,
  ) {
    this.#options = options;
    this.#signal = signal;
    this.#tell = tell;
  }

  /** Tells what changed, and sets the node's timer to what its state asks for now. */
  apply(node: FleetNode, transition: Transition | undefined): void {
    if (transition !== undefined) this.#tell(node, transition);
    this.arm(node);
  }

  /** Sets the node's timer to what its state asks for now. */
  arm(node: FleetNode): void {
    const timer = this.#timers.get(node);
    if (timer !== undefined) clearTimeout(timer);
    this.#timers.delete(node);
    const wakeAtMs = node.state.wakeAtMs;
    if (wakeAtMs === Number.POSITIVE_INFINITY || this.#signal.aborted) return;
    const next = setTimeout(() => this.#wake(node), Math.max(0, wakeAtMs - this.#options.now()));
    next.unref();
    this.#timers.set(node, next);
  }

  /** A hint that the node may be leaving: look now, but at most once a second. */
  hint(node: FleetNode): void {
    const nowMs = this.#options.now();
    if (nowMs - (this.#hintedAtMs.get(node) ?? Number.NEGATIVE_INFINITY) < HINT_GAP_MS) return;
    this.#hintedAtMs.set(node, nowMs);
    node.state.probeAt(nowMs);
    this.arm(node);
  }

  /** Plans the next regular probe of a node that has watchers. */
  watch(node: FleetNode): void {
    const { health, now, random } = this.#options;
    if (!health || node.watchers === 0 || node.loadBalanced) return;
    node.state.probeAt(now() + health.intervalMs * (0.8 + 0.4 * random()));
    this.arm(node);
  }

  /** Stops every timer. */
  stop(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }

  #wake(node: FleetNode): void {
    this.#timers.delete(node);
    const { probe, transition } = node.state.wake(this.#options.now());
    if (probe) void this.#probe(node);
    this.apply(node, transition);
  }

  async #probe(node: FleetNode): Promise<void> {
    const { health, authority, now, random } = this.#options;
    if (!health) return;
    const target = { url: node.url, authority, path: health.path, timeoutMs: health.timeoutMs };
    const result = await probeHealth(target, this.#signal);
    if (this.#signal.aborted) return;
    this.apply(node, node.state.probed(result, now(), random()));
    this.watch(node);
  }
}
