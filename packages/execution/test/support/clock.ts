// The clock that clients read, in a test's hands: what must succeed has all the time that a busy machine takes for it, and what must
// run out of time does so when the test says. Timers are not its: a call's own limit goes on by the system's.
import { onTestFinished, vi } from "vitest";

/** Time that stands still. */
export interface HeldClock {
  /** It is so much later at once. */
  add(ms: number): void;
}

/** Holds `performance.now()` until the test is over. */
export function heldClock(): HeldClock {
  // Whole, so that what is added gives sums without rounding.
  let nowMs = Math.ceil(performance.now());
  const clock = vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  onTestFinished(() => clock.mockRestore());
  return {
    add(ms) {
      nowMs += ms;
    },
  };
}

/** Half a minute: what one call may take in all. */
const oneTryMs = 30_000;

/** Starts a course that has half a minute for its first try, and no time left when that is over. */
export function inOneTry<T>(start: (time: { timeoutMs: number }) => Promise<T>): Promise<T> {
  const clock = heldClock();
  const started = start({ timeoutMs: oneTryMs });
  clock.add(oneTryMs);
  return started;
}
