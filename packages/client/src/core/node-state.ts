// The life of one node as a client sees it. Time and chance are arguments; the shell around it (fleet-nodes.ts) owns
// the timer, sends the probes and publishes the transitions.
//
//   new --health 200 / nobody else------> admitted --drain refusal------> draining
//   admitted --failures in a row--------> ejected    --health 503 twice--> unhealthy
//   draining | ejected | unhealthy --health 200 or a success------------> admitted
//   draining | ejected | unhealthy | new --bound passed----> probation --a success--> admitted

/**
 * `admitted` takes traffic; `probation` takes one request at a time; `new` waits for its first good probe; `draining`,
 * `ejected` and `unhealthy` are set aside; `removed` is gone from the endpoint source.
 */
export type NodeStateName =
  | "new"
  | "admitted"
  | "draining"
  | "ejected"
  | "unhealthy"
  | "probation"
  | "removed";

/** How long things last; all in milliseconds. */
export interface NodeRules {
  /** Longest time set aside without a good probe. */
  readonly boundMs: number;
  /** False when the fleet sends no health probes: then only the bound brings a node back. */
  readonly probes: boolean;
  /** Failures in a row that eject, and for how long; false never ejects. */
  readonly outlier: false | { readonly consecutive: number; readonly baseMs: number; readonly maxMs: number };
}

/** What a health probe found: 200, 503, or anything else (no answer included). */
export type ProbeResult = "ok" | "unavailable" | "no-answer";

/** A change of state, for subscribers. */
export interface Transition {
  readonly from: NodeStateName;
  readonly to: NodeStateName;
  readonly reason: string;
}

/** Delay of the first probe of an ejected or new node that did not say when to come back. */
const FIRST_PROBE_MS = 1_000;
/** Later probes: this, times 1.5 each, up to the maximum. */
const PROBE_GAP_MS = 2_000;
const PROBE_GAP_MAX_MS = 10_000;
/** A first 503 of a node in use is checked again after this. */
const SECOND_LOOK_MS = 500;
/** After a drain the node's `Retry-After` is believed up to here. */
const NOT_BEFORE_MAX_MS = 60_000;

/** The state machine of one node. */
export class NodeState {
  #name: NodeStateName;
  #failures = 0;
  #timesEjected = 0;
  #badProbes = 0;
  #sinceMs: number;
  #notBeforeMs = 0;
  #boundAtMs = Number.POSITIVE_INFINITY;
  #probeAtMs = Number.POSITIVE_INFINITY;
  #probeGapMs = PROBE_GAP_MS;
  readonly #rules: NodeRules;

  /** @param admitted true at a cold start: used before any probe said that it is well */
  constructor(rules: NodeRules, nowMs: number, admitted: boolean) {
    this.#rules = rules;
    this.#sinceMs = nowMs;
    this.#name = admitted || !rules.probes ? "admitted" : "new";
    if (this.#name === "new") {
      this.#probeAtMs = nowMs;
      this.#boundAtMs = nowMs + rules.boundMs;
    }
  }

  get name(): NodeStateName {
    return this.#name;
  }

  /** True for a node that gets no ordinary traffic. */
  get setAside(): boolean {
    return this.#name !== "admitted" && this.#name !== "probation";
  }

  /** Before this a set-aside node has announced, or is assumed, to be away. */
  get notBeforeMs(): number {
    return this.#notBeforeMs;
  }

  /** End of an ejection, undefined in other states. */
  get ejectedUntilMs(): number | undefined {
    return this.#name === "ejected" ? this.#boundAtMs : undefined;
  }

  /** Connect failures and ambiguous endings since the last answer. */
  get failures(): number {
    return this.#failures;
  }

  /** When {@link wake} must be called next; `Infinity` when there is nothing to wait for. */
  get wakeAtMs(): number {
    return Math.min(this.#probeAtMs, this.#boundAtMs);
  }

  /**
   * The node said that it leaves. Authoritative: no percentage limits it.
   * @param retryAfterMs its `Retry-After`, 0 when absent
   * @param random in [0, 1), spreads the first probe by a tenth
   */
  drained(nowMs: number, retryAfterMs: number, random: number): Transition | undefined {
    if (this.#name === "removed") return undefined;
    const waitMs = Math.min(retryAfterMs > 0 ? retryAfterMs : FIRST_PROBE_MS, NOT_BEFORE_MAX_MS);
    this.#notBeforeMs = nowMs + waitMs;
    // Refusals of requests that were under way when the drain began must not push the probe further away.
    if (this.#name === "draining") return undefined;
    return this.#setAside("draining", nowMs, waitMs, this.#rules.boundMs, random, "drain refusal");
  }

  /**
   * A connect failure, or a request that ended without an answer.
   * @param mayEject false when too many nodes are ejected already
   */
  failed(nowMs: number, mayEject: boolean, random: number): Transition | undefined {
    const { outlier } = this.#rules;
    this.#failures += 1;
    const limit =
      this.#name === "probation" ? 1 : outlier === false ? Number.POSITIVE_INFINITY : outlier.consecutive;
    const inUse = this.#name === "admitted" || this.#name === "probation";
    if (outlier === false || !inUse || this.#failures < limit || !mayEject) return undefined;
    this.#timesEjected += 1;
    const ejectMs = Math.min(outlier.baseMs * this.#timesEjected, outlier.maxMs);
    this.#notBeforeMs = nowMs + Math.min(FIRST_PROBE_MS, ejectMs);
    return this.#setAside(
      "ejected",
      nowMs,
      FIRST_PROBE_MS,
      ejectMs,
      random,
      `${this.#failures} failures in a row`,
    );
  }

  /** The node answered a request (with anything but a drain refusal). */
  answered(nowMs: number): Transition | undefined {
    this.#failures = 0;
    if (this.#name === "admitted") {
      const { outlier } = this.#rules;
      if (outlier !== false && nowMs - this.#sinceMs > outlier.maxMs) this.#timesEjected = 0;
      return undefined;
    }
    // An answer of a draining node may be to a request from before its drain; only a probe or its bound ends that.
    if (this.#name === "draining" || this.#name === "unhealthy" || this.#name === "removed") return undefined;
    return this.#admit(nowMs, "answered a request");
  }

  /** Nobody is admitted and there is nothing to lose: use a new node before its first good probe. */
  presume(nowMs: number): Transition | undefined {
    return this.#name === "new" ? this.#admit(nowMs, "no other node") : undefined;
  }

  /** Ask for a probe now; a probe that is due earlier stays. */
  probeAt(timeMs: number): void {
    if (this.#rules.probes && this.#name !== "removed") this.#probeAtMs = Math.min(this.#probeAtMs, timeMs);
  }

  /** A probe's result. */
  probed(result: ProbeResult, nowMs: number, random: number): Transition | undefined {
    if (this.#name === "removed") return undefined;
    if (result === "ok") {
      this.#badProbes = 0;
      return this.#name === "admitted" ? undefined : this.#admit(nowMs, "health 200");
    }
    if (this.#name === "admitted") {
      if (result === "no-answer") return undefined;
      this.#badProbes += 1;
      if (this.#badProbes < 2) {
        this.probeAt(nowMs + SECOND_LOOK_MS);
        return undefined;
      }
      this.#notBeforeMs = nowMs + FIRST_PROBE_MS;
      return this.#setAside(
        "unhealthy",
        nowMs,
        PROBE_GAP_MS,
        this.#rules.boundMs,
        random,
        "health 503 twice",
      );
    }
    this.#probeAtMs = nowMs + spread(this.#probeGapMs, random);
    this.#probeGapMs = Math.min(this.#probeGapMs * 1.5, PROBE_GAP_MAX_MS);
    return undefined;
  }

  /** Call at {@link wakeAtMs}. Answers whether to send a probe now, and what changed. */
  wake(nowMs: number): { probe: boolean; transition: Transition | undefined } {
    const probe = nowMs >= this.#probeAtMs;
    if (probe) this.#probeAtMs = Number.POSITIVE_INFINITY;
    if (nowMs < this.#boundAtMs) return { probe, transition: undefined };
    this.#boundAtMs = Number.POSITIVE_INFINITY;
    return { probe, transition: this.#change("probation", nowMs, "bound passed") };
  }

  /** The endpoint source no longer names it. */
  removed(nowMs: number): Transition | undefined {
    this.#boundAtMs = Number.POSITIVE_INFINITY;
    this.#probeAtMs = Number.POSITIVE_INFINITY;
    return this.#name === "removed" ? undefined : this.#change("removed", nowMs, "gone from the source");
  }

  #setAside(
    to: NodeStateName,
    nowMs: number,
    probeMs: number,
    boundMs: number,
    random: number,
    reason: string,
  ): Transition {
    this.#badProbes = 0;
    this.#probeGapMs = PROBE_GAP_MS;
    this.#probeAtMs = this.#rules.probes ? nowMs + spread(probeMs, random) : Number.POSITIVE_INFINITY;
    this.#boundAtMs = nowMs + boundMs;
    return this.#change(to, nowMs, reason);
  }

  #admit(nowMs: number, reason: string): Transition {
    this.#failures = 0;
    this.#badProbes = 0;
    this.#notBeforeMs = 0;
    this.#boundAtMs = Number.POSITIVE_INFINITY;
    this.#probeAtMs = Number.POSITIVE_INFINITY;
    return this.#change("admitted", nowMs, reason);
  }

  #change(to: NodeStateName, nowMs: number, reason: string): Transition {
    const from = this.#name;
    this.#name = to;
    this.#sinceMs = nowMs;
    return { from, to, reason };
  }
}

/** A tenth earlier or later. */
function spread(delayMs: number, random: number): number {
  return delayMs * (0.9 + 0.2 * random);
}
