/**
 * One writer a key, across processes. Keys share 256 lock files; inside a process the waiters of a file form a queue,
 * and only its head talks to the kernel.
 *
 * Nothing here waits inside flock(2): koffi's asynchronous calls occupy threads of libuv's pool (4 by default), and four
 * writers waiting there for another process stop every file operation of this one, the ones that would free what that
 * process waits for among them. So the head polls with LOCK_NB, and fairness comes from a second file, the *turn*: who
 * wants the lock must hold the turn first and keeps it until it has the lock. A process that releases and wants the
 * lock again therefore stands behind the one that polls.
 */
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { tryLock, unlock } from "./flock.ts";

/** Part of the on-disk format: every process must put a key into the same file. */
const STRIPE_COUNT = 256;
const POLL_FIRST_MS = 1;
const POLL_LIMIT_MS = 8;

interface Stripe {
  turn: number;
  lock: number;
  /** Resolves when the last one in the queue has released. */
  tail: Promise<void>;
}

/** Locks of the keys of one bucket directory. */
export class KeyLocks {
  readonly #directory: string;
  readonly #stripes = new Map<number, Stripe>();

  /** @param directory an existing directory for the lock files */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /**
   * Waits for a key's lock and answers the function that releases it; undefined when `stillWanted` answered false, which
   * is asked whenever it may have changed.
   * @throws the signal's reason
   */
  async acquire(
    keyBytes: string,
    signal?: AbortSignal,
    stillWanted: () => boolean = () => true,
  ): Promise<(() => void) | undefined> {
    signal?.throwIfAborted();
    const stripe = this.#stripe(stripeOf(keyBytes));
    const before = stripe.tail;
    const done = Promise.withResolvers<void>();
    stripe.tail = done.promise;
    await before;
    let locked = false;
    try {
      if (await poll(stripe.turn, signal, stillWanted)) {
        try {
          locked = await poll(stripe.lock, signal, stillWanted);
        } finally {
          unlock(stripe.turn);
        }
      }
    } finally {
      if (!locked) done.resolve();
    }
    if (!locked) return undefined;
    return () => {
      unlock(stripe.lock);
      done.resolve();
    };
  }

  /** Waits for those that hold or wait, then closes the lock files. */
  async close(): Promise<void> {
    const stripes = [...this.#stripes.values()];
    await Promise.all(stripes.map((stripe) => stripe.tail));
    this.#stripes.clear();
    for (const { turn, lock } of stripes) {
      closeSync(turn);
      closeSync(lock);
    }
  }

  #stripe(index: number): Stripe {
    let stripe = this.#stripes.get(index);
    if (stripe === undefined) {
      const path = join(this.#directory, index.toString(16).padStart(2, "0"));
      stripe = {
        turn: openSync(`${path}.turn`, "a", 0o600),
        lock: openSync(`${path}.lock`, "a", 0o600),
        tail: Promise.resolve(),
      };
      this.#stripes.set(index, stripe);
    }
    return stripe;
  }
}

async function poll(
  fd: number,
  signal: AbortSignal | undefined,
  stillWanted: () => boolean,
): Promise<boolean> {
  let pauseMs = POLL_FIRST_MS;
  while (stillWanted()) {
    if (tryLock(fd)) return true;
    await sleep(pauseMs, undefined, { signal });
    pauseMs = Math.min(pauseMs * 2, POLL_LIMIT_MS);
  }
  return false;
}

/** FNV-1a over the bytes of the key. */
function stripeOf(keyBytes: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < keyBytes.length; index += 1) {
    hash = Math.imul(hash ^ keyBytes.charCodeAt(index), 0x01000193);
  }
  return (hash >>> 0) % STRIPE_COUNT;
}
