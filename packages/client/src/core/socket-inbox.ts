/** What arrived and was not read yet, for one iterator: bounded by asking the connection to pause. */

/** Bounds of an inbox. */
export interface InboxPolicy {
  readonly maxMessages: number;
  readonly maxBytes: number;
}

/** Share of a bound below which reading goes on, so that it does not stop and start with every message. */
const RESUME_RATIO = 0.5;

/**
 * A first-in, first-out store that says when it is full. It never refuses a message: what the kernel delivered in the same
 * chunk as the one that filled it still has to go somewhere.
 */
export class Inbox<Data> {
  readonly #policy: InboxPolicy;
  #messages: { readonly data: Data; readonly sizeBytes: number }[] = [];
  #head = 0;
  #sizeBytes = 0;
  #full = false;

  constructor(policy: InboxPolicy) {
    this.#policy = policy;
  }

  get length(): number {
    return this.#messages.length - this.#head;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** True from the moment a bound is reached until half of it is free again: do not read from the connection meanwhile. */
  get full(): boolean {
    return this.#full;
  }

  push(data: Data, sizeBytes: number): void {
    this.#messages.push({ data, sizeBytes });
    this.#sizeBytes += sizeBytes;
    const { maxMessages, maxBytes } = this.#policy;
    if (this.length >= maxMessages || this.#sizeBytes >= maxBytes) this.#full = true;
  }

  /** Takes the oldest message out. Boxed, since a message may be an empty string. */
  shift(): { readonly data: Data } | undefined {
    const message = this.#messages[this.#head];
    if (message === undefined) return undefined;
    this.#head += 1;
    this.#sizeBytes -= message.sizeBytes;
    if (this.#head * 2 >= this.#messages.length) {
      this.#messages = this.#messages.slice(this.#head);
      this.#head = 0;
    }
    const { maxMessages, maxBytes } = this.#policy;
    if (this.length <= maxMessages * RESUME_RATIO && this.#sizeBytes <= maxBytes * RESUME_RATIO)
      this.#full = false;
    return message;
  }

  clear(): void {
    this.#messages = [];
    this.#head = 0;
    this.#sizeBytes = 0;
    this.#full = false;
  }
}
