/**
 * Keepalive of one open connection: when to ping, which answers to swallow, when the peer counts as dead.
 *
 * The text ping is answered by the runtime in the cell's place (an auto-response pair), so it wakes nobody; its text is fixed
 * and carries no number, so at most one is under way, unless a stalled event loop made a second one necessary. Everything
 * that arrives proves life. Nothing here keeps a timer: the shell calls `wake` at the time that the last call returned.
 */

/** Resolved keepalive options. */
export interface KeepalivePolicy {
  /** Which pings are sent: the text pair, protocol pings (opcode 9), or both. */
  readonly mode: "auto-response" | "protocol" | "both";
  readonly request: string;
  readonly response: string;
  /** A ping is due when nothing arrived for this long (±10 %), milliseconds. */
  readonly intervalMs: number;
  /** A ping must be followed by anything at all within this time, milliseconds. */
  readonly timeoutMs: number;
}

/** What arrived. `text` only for text messages. */
export type InboundFrame =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "binary" | "ping" | "pong" };

/** What an inbound frame means to keepalive. */
export interface Inbound {
  /** True: this was the answer to our ping and is not for the application. */
  readonly swallow: boolean;
  /** Round trip in milliseconds, when the frame answered a ping. */
  readonly rttMs: number | undefined;
}

/** What to do at a wake-up. */
export interface Wake {
  readonly send: readonly ("text" | "protocol")[];
  /** The peer is gone: cut the connection. */
  readonly dead: boolean;
  /** The text pair is not registered: protocol pings are answered, the text is not. Said once. */
  readonly misconfigured: boolean;
  /** When to call again, on the same clock. Infinity: not before `resume`. */
  readonly wakeAtMs: number;
}

interface Judgement {
  readonly sentMs: number;
  readonly protocolSent: boolean;
  /** Bytes read from the connection when the ping went out: part of a large message is a sign of life too. */
  readonly bytesReceived: number;
  deadlineMs: number;
  /** A frame arrived since. */
  alive: boolean;
  protocolAnswered: boolean;
  /** The round trip was already taken from one of the two answers. */
  measured: boolean;
  /** The deadline was moved once because the event loop came late. */
  excused: boolean;
}

/** Share of the interval by which each cycle varies, so that sockets opened together drift apart. */
const JITTER_RATIO = 0.1;
/** A timer this late means that the loop stalled, and what the peer sent may still wait to be read. */
const LATE_MS = 250;
const NOT_OURS: Inbound = { swallow: false, rttMs: undefined };

/** Keepalive of one connection. Times are milliseconds of one clock that never goes back. */
export class Keepalive {
  readonly #policy: KeepalivePolicy;
  readonly #random: () => number;
  #lastReceivedMs: number;
  #idleMs: number;
  /** The ping that is under way, until anything proves the peer alive or its time is up. */
  #judgement: Judgement | undefined;
  /** A text ping went out whose answer has not come; outlives the judgement. */
  #textDue = false;
  /** No text ping was answered yet, so a protocol ping goes along. */
  #unproven: boolean;
  #protocolOnly: boolean;
  #paused = false;

  /** @param random uniform in [0, 1) */
  constructor(policy: KeepalivePolicy, random: () => number, nowMs: number) {
    this.#policy = policy;
    this.#random = random;
    this.#lastReceivedMs = nowMs;
    this.#protocolOnly = policy.mode === "protocol";
    this.#unproven = true;
    this.#idleMs = this.#drawInterval();
  }

  /** When `wake` must be called next; Infinity while paused. */
  get wakeAtMs(): number {
    if (this.#paused) return Number.POSITIVE_INFINITY;
    return this.#judgement?.deadlineMs ?? this.#lastReceivedMs + this.#idleMs;
  }

  /** A frame arrived. */
  received(frame: InboundFrame, nowMs: number): Inbound {
    this.#lastReceivedMs = nowMs;
    const ping = this.#judgement;
    if (ping !== undefined) ping.alive = true;
    if (frame.kind === "text" && this.#textDue && frame.text === this.#policy.response) {
      this.#textDue = false;
      this.#unproven = false;
      this.#judgement = undefined;
      return { swallow: true, rttMs: measure(ping, nowMs) };
    }
    if (frame.kind !== "pong" || ping === undefined || !ping.protocolSent) return NOT_OURS;
    ping.protocolAnswered = true;
    if (!this.#textDue) this.#judgement = undefined;
    return { swallow: false, rttMs: measure(ping, nowMs) };
  }

  /**
   * The time of `wakeAtMs` has come.
   *
   * @param dueMs the time the shell had been asked to call at; a late call means that this process stalled
   * @param bytesReceived bytes read from the connection so far
   */
  wake(nowMs: number, dueMs: number, bytesReceived: number): Wake {
    if (nowMs < this.wakeAtMs) return this.#nothing();
    const ping = this.#judgement;
    return ping === undefined
      ? this.#ping(nowMs, bytesReceived)
      : this.#judge(ping, nowMs, nowMs - dueMs, bytesReceived);
  }

  /** The consumer stopped reading: what the peer sends cannot be seen, so nothing is judged. */
  pause(): void {
    this.#paused = true;
  }

  /** The consumer reads again: the time starts afresh. */
  resume(nowMs: number): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#lastReceivedMs = nowMs;
    this.#judgement = undefined;
  }

  #judge(ping: Judgement, nowMs: number, lateMs: number, bytesReceived: number): Wake {
    if (ping.protocolAnswered && this.#textDue) {
      this.#protocolOnly = true;
      this.#textDue = false;
      this.#judgement = undefined;
      return { ...this.#nothing(), misconfigured: true };
    }
    if (ping.alive) {
      this.#judgement = undefined;
      return this.#nothing();
    }
    if (bytesReceived > ping.bytesReceived) {
      this.#lastReceivedMs = nowMs;
      this.#judgement = undefined;
      return this.#nothing();
    }
    if (lateMs > this.#policy.intervalMs) return this.#ping(nowMs, bytesReceived);
    if (lateMs > LATE_MS && !ping.excused) {
      ping.excused = true;
      ping.deadlineMs = nowMs + Math.min(this.#policy.timeoutMs, lateMs);
      return this.#nothing();
    }
    return { send: [], dead: true, misconfigured: false, wakeAtMs: Number.POSITIVE_INFINITY };
  }

  #ping(nowMs: number, bytesReceived: number): Wake {
    // The text carries no number, so a second one is never sent before the first is answered: a protocol ping asks instead.
    const text = !this.#protocolOnly && !this.#textDue;
    const protocol = !text || this.#policy.mode === "both" || this.#unproven;
    if (text) this.#textDue = true;
    this.#idleMs = this.#drawInterval();
    this.#judgement = {
      sentMs: nowMs,
      protocolSent: protocol,
      bytesReceived,
      deadlineMs: nowMs + this.#policy.timeoutMs,
      alive: false,
      protocolAnswered: false,
      measured: false,
      excused: false,
    };
    const send: ("text" | "protocol")[] = [];
    if (text) send.push("text");
    if (protocol) send.push("protocol");
    return { send, dead: false, misconfigured: false, wakeAtMs: this.wakeAtMs };
  }

  #nothing(): Wake {
    return { send: [], dead: false, misconfigured: false, wakeAtMs: this.wakeAtMs };
  }

  #drawInterval(): number {
    return this.#policy.intervalMs * (1 - JITTER_RATIO + 2 * JITTER_RATIO * this.#random());
  }
}

/** The round trip of `ping`, from the first of its answers. */
function measure(ping: Judgement | undefined, nowMs: number): number | undefined {
  if (ping === undefined || ping.measured) return undefined;
  ping.measured = true;
  return nowMs - ping.sentMs;
}
