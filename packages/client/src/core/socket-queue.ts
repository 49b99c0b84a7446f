/**
 * What waits to be sent: bounded by count, bytes and age. Order is kept; a message leaves once, by `shift`, or is handed back
 * as dropped. Every message comes with its size, since the size of text is its UTF-8 length and nothing here encodes.
 */

/** Bounds of the queue, resolved. */
export interface QueuePolicy {
  readonly maxMessages: number;
  readonly maxBytes: number;
  readonly maxAgeMs: number;
  readonly overflow: "throw" | "drop-oldest" | "drop-newest";
}

/** One message in the queue. */
export interface Queued<Data> {
  readonly data: Data;
  readonly sizeBytes: number;
  readonly queuedMs: number;
}

/** What `push` did. `full` only under the policy `throw`; `dropped` left the queue (or never got in) and will not be sent. */
export type Pushed<Data> =
  | { readonly kind: "queued"; readonly dropped: readonly Queued<Data>[] }
  | { readonly kind: "full" };

/** A bounded first-in, first-out queue. */
export class SendQueue<Data> {
  readonly #policy: QueuePolicy;
  #messages: Queued<Data>[] = [];
  #sizeBytes = 0;

  constructor(policy: QueuePolicy) {
    this.#policy = policy;
  }

  /** Messages waiting. */
  get length(): number {
    return this.#messages.length;
  }

  /** Bytes waiting. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** When the oldest message gets too old, or undefined when none waits. */
  get expiresAtMs(): number | undefined {
    const oldest = this.#messages[0];
    return oldest === undefined ? undefined : oldest.queuedMs + this.#policy.maxAgeMs;
  }

  /** Adds a message at the end, as far as the policy permits. Expire first, so that the dead make room. */
  push(data: Data, sizeBytes: number, nowMs: number): Pushed<Data> {
    const message: Queued<Data> = { data, sizeBytes, queuedMs: nowMs };
    const dropped: Queued<Data>[] = [];
    if (!this.#fits(sizeBytes)) {
      if (this.#policy.overflow === "throw") return { kind: "full" };
      const hopeless = sizeBytes > this.#policy.maxBytes || this.#policy.maxMessages === 0;
      if (this.#policy.overflow === "drop-newest" || hopeless) return { kind: "queued", dropped: [message] };
      while (!this.#fits(sizeBytes)) {
        const oldest = this.shift();
        if (oldest === undefined) break;
        dropped.push(oldest);
      }
    }
    this.#messages.push(message);
    this.#sizeBytes += sizeBytes;
    return { kind: "queued", dropped };
  }

  /** Takes the oldest message out. */
  shift(): Queued<Data> | undefined {
    const oldest = this.#messages.shift();
    if (oldest !== undefined) this.#sizeBytes -= oldest.sizeBytes;
    return oldest;
  }

  /** Takes out what is older than `maxAgeMs`. */
  expire(nowMs: number): Queued<Data>[] {
    const expired: Queued<Data>[] = [];
    while (this.expiresAtMs !== undefined && this.expiresAtMs <= nowMs) {
      const oldest = this.shift();
      if (oldest !== undefined) expired.push(oldest);
    }
    return expired;
  }

  /** Takes everything out. */
  clear(): Queued<Data>[] {
    const all = this.#messages;
    this.#messages = [];
    this.#sizeBytes = 0;
    return all;
  }

  #fits(sizeBytes: number): boolean {
    const { maxMessages, maxBytes } = this.#policy;
    return this.#messages.length < maxMessages && this.#sizeBytes + sizeBytes <= maxBytes;
  }
}
