import { setTimeout as sleep } from "node:timers/promises";

/** Waits; ends early, by throwing the signal's reason, when aborted. Never keeps a process alive that has nothing else to do. */
export async function pause(durationMs: number, signal?: AbortSignal): Promise<void> {
  await sleep(durationMs, undefined, signal === undefined ? {} : { signal }).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw error;
  });
}
