import { onTestFinished, vi } from "vitest";

/**
 * Timers of exactly this length do not run by themselves any more: each waits here for the test to call it. A length
 * that nothing else uses tells one kind of timer from all others.
 */
export function holdTimers(lengthMs: number): (() => void)[] {
  const held: (() => void)[] = [];
  const { setTimeout } = globalThis;
  const spy = vi.spyOn(globalThis, "setTimeout");
  onTestFinished(() => spy.mockRestore());
  spy.mockImplementation(((run: () => void, delayMs: number, ...rest: []) => {
    if (delayMs !== lengthMs) return setTimeout(run, delayMs, ...rest);
    held.push(run);
    return setTimeout(() => undefined, delayMs);
  }) as typeof setTimeout);
  return held;
}
