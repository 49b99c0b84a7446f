// The clock by which a splice server counts idle times, in the hands of a test: a pause of the machine is no time.
import { performance } from "node:perf_hooks";
import { onTestFinished, vi } from "vitest";

/** Holds the clock until the test ends. It goes on when `ms` does; timers, the looks at deadlines among them, run as ever. */
export function heldClock(): { ms: number } {
  const clock = { ms: performance.now() };
  const held = vi.spyOn(performance, "now").mockImplementation(() => clock.ms);
  onTestFinished(() => held.mockRestore());
  return clock;
}
