// The clock by which products measure, in a test's hands: what must succeed has all the time that a busy machine takes for it, and
// what must run out of time does so when the test says. A pause of the machine is no time.
import { onTestFinished, vi } from "vitest";

/** Holds `performance.now()` until the test ends. It goes on when `ms` does; timers run as ever. */
export function heldClock(): { ms: number } {
  // Whole, so that what is added gives sums without rounding.
  const clock = { ms: Math.ceil(performance.now()) };
  const held = vi.spyOn(performance, "now").mockImplementation(() => clock.ms);
  onTestFinished(() => held.mockRestore());
  return clock;
}
