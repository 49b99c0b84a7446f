// Which signal is a person's second wish, by a clock that the test holds.
import { expect, it, onTestFinished, vi } from "vitest";
import { watchSignals } from "../src/signals.ts";

/** Signals that are given at times, in ms, and what was made of each. */
function told(...given: [NodeJS.Signals, number][]): string[] {
  const calls: string[] = [];
  // Of its own, so that no other listener of this process hears anything.
  const listeners = new Map<string, (signal: NodeJS.Signals) => void>();
  const on = vi.spyOn(process, "on").mockImplementation((name, listener) => {
    listeners.set(String(name), listener);
    return process;
  });
  watchSignals({
    first: (signal) => void calls.push(`first ${signal}`),
    second: (signal) => void calls.push(`second ${signal}`),
  });
  on.mockRestore();
  let nowMs = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  onTestFinished(() => clock.mockRestore());
  for (const [signal, atMs] of given) {
    nowMs = atMs;
    listeners.get(signal)?.(signal);
  }
  return calls;
}

it("the same signal again within a tenth of a second is the echo of the first", () => {
  expect(told(["SIGINT", 1_000], ["SIGINT", 1_000], ["SIGINT", 1_100])).toEqual(["first SIGINT"]);
});

it("the same signal again later is a second one", () => {
  expect(told(["SIGTERM", 1_000], ["SIGTERM", 1_101])).toEqual(["first SIGTERM", "second SIGTERM"]);
});

it("another signal is a second one at once", () => {
  expect(told(["SIGTERM", 1_000], ["SIGINT", 1_000])).toEqual(["first SIGTERM", "second SIGINT"]);
});

it("a daemon keeps SIGHUP to itself", () => {
  expect(told(["SIGHUP", 0])).toEqual([]);
});
