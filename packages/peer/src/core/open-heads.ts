// Between the head of a request and the end of its body a second copy of the same head can pass, and its body may end
// minutes later, when the nonce of the first is forgotten. Therefore all heads of one nonce share one ticket, and the
// first that comes to its end uses it.

/** One per nonce whose body is being read. */
export interface HeadTicket {
  used: boolean;
  /** How many heads of the nonce were let in. */
  heads: number;
  readonly headMs: number;
  readonly stampMs: number;
}

/**
 * Heads of one nonce that are let in: whoever captured one could otherwise make a node wait for its body on any number
 * of connections. An honest sender sends one.
 */
const maxHeadsPerNonce = 8;

const firstSweepAt = 1_024;

/** The tickets of the last minute; a head that never comes to its end is forgotten with time. */
export class OpenHeads {
  readonly #retentionMs: number;
  readonly #tickets = new Map<string, HeadTicket>();
  #sweepAt = firstSweepAt;
  #floorMs = Number.NEGATIVE_INFINITY;

  constructor(retentionMs: number) {
    this.#retentionMs = retentionMs;
  }

  /** How many nonces have a ticket, counting some that will be swept. */
  get count(): number {
    return this.#tickets.size;
  }

  /** The latest stamp of a ticket that was forgotten: as of a nonce that was, nothing older may be accepted. */
  get floorMs(): number {
    return this.#floorMs;
  }

  /** The ticket of a nonce, a new one if it has none; undefined when too many heads have asked for it. */
  open(nonce: string, nowMs: number, stampMs: number): HeadTicket | undefined {
    const known = this.#tickets.get(nonce);
    if (known !== undefined) {
      if (known.heads >= maxHeadsPerNonce) return undefined;
      known.heads += 1;
      return known;
    }
    if (this.#tickets.size >= this.#sweepAt) this.sweep(nowMs);
    const ticket = { used: false, heads: 1, headMs: nowMs, stampMs };
    this.#tickets.set(nonce, ticket);
    return ticket;
  }

  /** Marks the ticket of a nonce, if it has one, as used and gives it up: from here on the replay cache knows it. */
  close(nonce: string): void {
    const ticket = this.#tickets.get(nonce);
    if (ticket === undefined) return;
    ticket.used = true;
    this.#tickets.delete(nonce);
  }

  /** Forgets the tickets that no acceptable head can ask for any more; the next sweep is due when twice as many lie here. */
  sweep(nowMs: number): void {
    for (const [nonce, ticket] of this.#tickets) {
      if (nowMs - ticket.headMs <= this.#retentionMs) continue;
      this.#floorMs = Math.max(this.#floorMs, ticket.stampMs);
      this.#tickets.delete(nonce);
    }
    this.#sweepAt = Math.max(firstSweepAt, this.#tickets.size * 2);
  }
}
