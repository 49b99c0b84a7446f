import { setTimeout as pause } from "node:timers/promises";
import { expect, it } from "vitest";
import { busyMachine, measureLoad } from "../src/machine-load.ts";
import { type Summary, Tally } from "../src/tally.ts";

/** A run of three nodes in which a cell was away for too long, and otherwise all was well. */
const slow: Summary = {
  ...new Tally().summary({ nodes: 3, startMs: 0, endMs: 1, report: "r.html" }),
  requests: 2_000,
  drains: 3,
  kills: 1,
  unavailableMs: 3_001,
};
const idle = { loopDelayMs: 3, idleRatio: 0.4 };
const lateTimers = { ...idle, loopDelayMs: 120.4 };
const noIdleTime = { ...idle, idleRatio: 0.034 };

it.each([
  [
    "late timers",
    lateTimers,
    "timers came 120 ms late (99th percentile), and 40 % of its processors' time was idle",
  ],
  [
    "no idle time",
    noIdleTime,
    "timers came 3 ms late (99th percentile), and 3 % of its processors' time was idle",
  ],
])("a run that was only slow, on a machine with %s, says so in one line", (_, load, words) => {
  const line = busyMachine(slow, 3, load);
  expect(line).toContain(`The machine was busy: ${words}.`);
  expect(line).not.toContain("\n");
});

it.each([
  ["the machine had room", slow, idle],
  ["every promise held", { ...slow, unavailableMs: 3_000 }, lateTimers],
  ["something else is broken too", { ...slow, lost: 1 }, lateTimers],
  ["only something else is broken", { ...slow, unavailableMs: 3_000, lost: 1 }, lateTimers],
])("nothing is said when %s", (_, summary, load) => {
  expect(busyMachine(summary, 3, load)).toBeUndefined();
});

it("a loop that is blocked shows in the measure", async () => {
  const loadSinceStart = measureLoad();
  await pause(20);
  const endMs = performance.now() + 200;
  while (performance.now() < endMs);
  await pause(20);
  const { loopDelayMs, idleRatio } = loadSinceStart();
  expect(loopDelayMs).toBeGreaterThan(100);
  expect(idleRatio).toBeGreaterThanOrEqual(0);
  expect(idleRatio).toBeLessThanOrEqual(1);
});
