/** Callers that wait for a socket to reach some state. Nothing is left behind when a wait ends, however it ends. */
export class Waiters {
  readonly #waiting = new Set<{ resolve(): void; reject(reason: unknown): void }>();

  get size(): number {
    return this.#waiting.size;
  }

  /** Waits for `resolveAll`, `rejectAll`, or the signal, whose reason it then rejects with. */
  wait(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const done = (): void => {
        this.#waiting.delete(waiter);
        signal?.removeEventListener("abort", aborted);
      };
      const waiter = {
        resolve: (): void => {
          done();
          resolve();
        },
        reject: (reason: unknown): void => {
          done();
          reject(reason);
        },
      };
      const aborted = (): void => waiter.reject(signal?.reason);
      this.#waiting.add(waiter);
      signal?.addEventListener("abort", aborted);
    });
  }

  resolveAll(): void {
    for (const waiter of [...this.#waiting]) waiter.resolve();
  }

  rejectAll(reason: unknown): void {
    for (const waiter of [...this.#waiting]) waiter.reject(reason);
  }
}
