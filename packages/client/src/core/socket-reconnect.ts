/**
 * When and where a `CellSocket` dials next: a state machine without timers. The shell reports what happened, gets one step
 * back, does it and reports again.
 *
 * A *round* asks every candidate at most once. Between rounds there is backoff. An open connection resets the backoff only
 * after it has lasted `minUptimeMs`, so a server that accepts and closes is met with growing delays; for the same reason a
 * loss is answered at once only the first time, until a connection has lasted again.
 */
import type { CloseRule } from "./close-codes.ts";
import { type BackoffPolicy, backoffDelayMs, CANDIDATE_GAP_MS } from "./socket-action.ts";
import type { UpgradeAction } from "./socket-upgrade.ts";

/** The options that decide about reconnecting, resolved. */
export interface ReconnectPolicy extends BackoffPolicy {
  /** False: one round at the start, and a lost connection stays lost. */
  readonly enabled: boolean;
  /** A connection that lasted this long resets the backoff, milliseconds. */
  readonly minUptimeMs: number;
  /** Dials in a row without a connection that lasted; then the socket gives up. */
  readonly maxAttempts: number;
  /** Time without a connection that lasted, milliseconds; then the socket gives up. 0: never. */
  readonly giveUpAfterMs: number;
  /** Headers or target are functions, so another dial can differ from the last one. */
  readonly refreshable: boolean;
}

/** What the shell has to do next. */
export type ReconnectStep =
  /** Wait `delayMs`, then dial a node outside `tried`, and outside `avoided` if there is one. */
  | { readonly kind: "dial"; readonly delayMs: number }
  /** It is over. `done`: the peer was finished; `fatal`: another dial cannot help; `gave-up`: a limit was reached. */
  | { readonly kind: "stop"; readonly why: "done" | "fatal" | "gave-up" };

const FATAL: ReconnectStep = { kind: "stop", why: "fatal" };
const DONE: ReconnectStep = { kind: "stop", why: "done" };
const GAVE_UP: ReconnectStep = { kind: "stop", why: "gave-up" };

/** The dialling half of a `CellSocket` as a pure state machine. Times are milliseconds of one clock that never goes back. */
export class ReconnectPlan {
  /** Nodes asked in this round. */
  readonly tried = new Set<string>();
  /** Nodes to ask only when no other is left. */
  readonly avoided = new Set<string>();
  readonly #policy: ReconnectPolicy;
  readonly #random: () => number;
  #failures = 0;
  #attempts = 0;
  /** Closes in a row by a code that may only come so often. */
  #limitedCloses = 0;
  /** A loss was already answered at once since the last connection that lasted. */
  #hurried = false;
  /** Headers and target were already evaluated afresh after a 401 or 403. */
  #refreshed = false;
  #everOpen = false;
  #openedMs = 0;
  #downSinceMs: number;

  /** @param random uniform in [0, 1) */
  constructor(policy: ReconnectPolicy, random: () => number, nowMs: number) {
    this.#policy = policy;
    this.#random = random;
    this.#downSinceMs = nowMs;
  }

  /** Dials since the last connection that lasted, the running one included. */
  get attempts(): number {
    return this.#attempts;
  }

  /** A dial to `node` begins. */
  dialing(node: string): void {
    this.#attempts += 1;
    this.tried.add(node);
  }

  /** No candidate is left in this round. */
  roundOver(nowMs: number): ReconnectStep {
    this.avoided.clear();
    return this.#backOff(nowMs, 0, 0);
  }

  /** The upgrade to `node` failed, with the action that the table gave. `node` is undefined when none was asked. */
  upgradeFailed(action: UpgradeAction, node: string | undefined, nowMs: number): ReconnectStep {
    if (action.kind === "next-node")
      return this.#dial(nowMs, this.#everOpen ? this.#random() * CANDIDATE_GAP_MS : 0);
    if (action.kind === "never") return FATAL;
    if (action.kind === "authorize") return this.#refresh(nowMs, node);
    this.avoided.clear();
    if (node !== undefined) this.avoided.add(node);
    return this.#backOff(nowMs, action.floorMs, 0);
  }

  /** A connection is open. */
  opened(nowMs: number): void {
    this.#everOpen = true;
    this.#openedMs = nowMs;
    this.tried.clear();
    this.avoided.clear();
  }

  /** Milliseconds since the last connection opened. */
  upMs(nowMs: number): number {
    return nowMs - this.#openedMs;
  }

  /** The open connection to `node` was lost, with the rule that the table gave. */
  closed(rule: CloseRule, node: string, nowMs: number): ReconnectStep {
    if (rule.action === "never") return rule.clean ? DONE : FATAL;
    if (!this.#policy.enabled) return FATAL;
    this.#settle(nowMs);
    if (rule.node !== "keep") this.avoided.add(node);
    this.#limitedCloses = Number.isFinite(rule.limitCount) ? this.#limitedCloses + 1 : 0;
    if (this.#limitedCloses > rule.limitCount) return FATAL;
    if (rule.action === "authorize") return this.#refresh(nowMs, node);
    if (rule.action === "backoff" || this.#hurried) return this.#backOff(nowMs, 0, rule.floorMs);
    this.#hurried = true;
    return this.#dial(nowMs, this.#random() * this.#policy.spreadMs);
  }

  /** This side leaves the open connection to `node`, or stops waiting, to dial another node now. */
  leave(node: string | undefined, nowMs: number): ReconnectStep {
    if (node !== undefined) {
      this.#settle(nowMs);
      this.avoided.add(node);
    }
    this.tried.clear();
    return { kind: "dial", delayMs: 0 };
  }

  /** A connection that lasted forgives what was before it. */
  #settle(nowMs: number): void {
    if (this.upMs(nowMs) < this.#policy.minUptimeMs) return;
    this.#failures = 0;
    this.#attempts = 0;
    this.#limitedCloses = 0;
    this.#hurried = false;
    this.#refreshed = false;
    this.#downSinceMs = nowMs;
  }

  #refresh(nowMs: number, node: string | undefined): ReconnectStep {
    if (this.#refreshed || !this.#policy.refreshable) return FATAL;
    this.#refreshed = true;
    if (node !== undefined) this.tried.delete(node);
    return this.#dial(nowMs, 0);
  }

  #backOff(nowMs: number, floorMs: number, ceilingMs: number): ReconnectStep {
    if (!this.#policy.enabled) return FATAL;
    const delayMs = floorMs + backoffDelayMs(this.#policy, this.#failures, this.#random(), ceilingMs);
    this.#failures += 1;
    this.tried.clear();
    return this.#dial(nowMs, delayMs);
  }

  #dial(nowMs: number, delayMs: number): ReconnectStep {
    const { maxAttempts, giveUpAfterMs } = this.#policy;
    if (this.#attempts >= maxAttempts) return GAVE_UP;
    if (giveUpAfterMs > 0 && nowMs + delayMs - this.#downSinceMs > giveUpAfterMs) return GAVE_UP;
    return { kind: "dial", delayMs };
  }
}
