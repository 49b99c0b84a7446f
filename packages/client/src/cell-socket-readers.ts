// The iterators over one socket. Each has its own inbox; the connection is paused while any of them is full.
import { Inbox, type InboxPolicy } from "./core/socket-inbox.ts";

/** A message as an iterator gives it. */
export type Message = string | ArrayBuffer;

type Waiting = { resolve(result: IteratorResult<Message>): void; reject(error: unknown): void };
/** How a socket ended: with an error, or with none. */
type End = { readonly error: unknown } | "clean";

const DONE: IteratorResult<Message> = { done: true, value: undefined };

/**
 * Every reader of a socket. Until the first listener or iterator shows up, messages are kept for it: a `for await` that
 * begins after `await opened()` misses nothing. Only the newest within the bounds are, since a socket that nobody reads
 * must go on reading, or it would not notice its own end.
 */
export class Readers {
  readonly #policy: InboxPolicy;
  readonly #changed: () => void;
  readonly #active = new Set<Reader>();
  #early: Inbox<Message> | undefined;
  #end: End | undefined;

  /** @param changed called when `full` may have changed */
  constructor(policy: InboxPolicy, changed: () => void) {
    this.#policy = policy;
    this.#changed = changed;
    this.#early = new Inbox(policy);
  }

  /** True while reading from the connection has to wait. */
  get full(): boolean {
    for (const reader of this.#active) if (reader.inbox.full) return true;
    return false;
  }

  /** True when somebody iterates, or may begin to. */
  get interested(): boolean {
    return this.#active.size > 0 || this.#early !== undefined;
  }

  /** Somebody listens: nothing has to be kept for a first iterator any more. */
  listening(): void {
    this.#early = undefined;
  }

  push(message: Message, sizeBytes: number): void {
    for (const reader of this.#active) reader.push(message, sizeBytes);
    const early = this.#early;
    if (early === undefined) return;
    early.push(message, sizeBytes);
    while (early.length > this.#policy.maxMessages || early.sizeBytes > this.#policy.maxBytes) early.shift();
  }

  /** Ends all iterators once they have given what they hold. */
  finish(end: End): void {
    this.#end = end;
    for (const reader of this.#active) reader.finish(end);
  }

  open(): AsyncIterator<Message> {
    const reader = new Reader(this.#early ?? new Inbox(this.#policy), {
      changed: this.#changed,
      left: () => {
        this.#active.delete(reader);
        this.#changed();
      },
    });
    this.#early = undefined;
    this.#active.add(reader);
    if (this.#end !== undefined) reader.finish(this.#end);
    if (reader.inbox.full) this.#changed();
    return reader;
  }
}

class Reader implements AsyncIterator<Message> {
  readonly inbox: Inbox<Message>;
  readonly #owner: { changed(): void; left(): void };
  readonly #waiting: Waiting[] = [];
  #end: End | undefined;

  constructor(inbox: Inbox<Message>, owner: { changed(): void; left(): void }) {
    this.inbox = inbox;
    this.#owner = owner;
  }

  push(message: Message, sizeBytes: number): void {
    const waiting = this.#waiting.shift();
    if (waiting !== undefined) {
      waiting.resolve({ done: false, value: message });
      return;
    }
    this.inbox.push(message, sizeBytes);
    if (this.inbox.full) this.#owner.changed();
  }

  finish(end: End): void {
    this.#end = end;
    for (const waiting of this.#waiting.splice(0)) {
      this.#last().then(waiting.resolve, waiting.reject);
    }
  }

  next(): Promise<IteratorResult<Message>> {
    const wasFull = this.inbox.full;
    const message = this.inbox.shift();
    if (message !== undefined) {
      if (wasFull && !this.inbox.full) this.#owner.changed();
      return Promise.resolve({ done: false, value: message.data });
    }
    if (this.#end !== undefined) return this.#last();
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  /** The loop was left: the socket lives on, but keeps nothing for this reader. */
  return(): Promise<IteratorResult<Message>> {
    this.#end = "clean";
    this.inbox.clear();
    this.finish("clean");
    this.#owner.left();
    return Promise.resolve(DONE);
  }

  /** An error is thrown once; after it the iterator is simply done. */
  #last(): Promise<IteratorResult<Message>> {
    const end = this.#end;
    this.#end = "clean";
    return end === undefined || end === "clean" ? Promise.resolve(DONE) : Promise.reject(end.error);
  }
}
