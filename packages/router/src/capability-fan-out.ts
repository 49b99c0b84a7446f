// Asks every backend for its report at once (execution API, section 7.1). Callers that come meanwhile share the answer, where the
// original refuses them.
import { capabilitiesMs, type Dispatchers } from "./backend/dispatchers.ts";
import type { OwnAnswer } from "./core/answer.ts";
import { type Capabilities, capabilitiesOf, type Probe } from "./core/capabilities.ts";
import { maxProbedCount } from "./core/decide.ts";
import type { CallContext } from "./executions.ts";
import type { RouterListener } from "./router-event.ts";

/** The one fan-out of a router. */
export class CapabilityFanOut {
  readonly #dispatchers: Dispatchers;
  readonly #emit: RouterListener;
  #running: { readonly capabilities: Promise<Capabilities>; sharedCount: number } | undefined;

  constructor(dispatchers: Dispatchers, emit: RouterListener) {
    this.#dispatchers = dispatchers;
    this.#emit = emit;
  }

  /** The answer about all nodes, in under four seconds; undefined where there are too many to ask. */
  async ask(context: CallContext): Promise<OwnAnswer | undefined> {
    if (context.origins.length > maxProbedCount) return undefined;
    if (this.#running !== undefined) {
      this.#running.sharedCount += 1;
      return (await this.#running.capabilities).answer;
    }
    const startedMs = performance.now();
    const running = { capabilities: this.#ask(context), sharedCount: 0 };
    this.#running = running;
    try {
      const { answer, nodeCount, eligibleCount } = await running.capabilities;
      const durationMs = performance.now() - startedMs;
      const { sharedCount } = running;
      this.#emit({ kind: "capabilities", nodeCount, eligibleCount, sharedCount, durationMs });
      return answer;
    } finally {
      this.#running = undefined;
    }
  }

  async #ask({ origins, token, startedMs }: CallContext): Promise<Capabilities> {
    // The lookup of dispatchers took its part of the time.
    const leftMs = capabilitiesMs - (performance.now() - startedMs);
    return capabilitiesOf(await Promise.all(origins.map((origin) => this.#probe(origin, token, leftMs))));
  }

  async #probe(origin: string, token: Uint8Array, leftMs: number): Promise<Probe> {
    try {
      const report = await this.#dispatchers.report(origin, token, leftMs);
      return report === undefined ? "lost" : { report };
    } catch (error) {
      this.#emit({ kind: "defect", error });
      return "failed";
    }
  }
}
