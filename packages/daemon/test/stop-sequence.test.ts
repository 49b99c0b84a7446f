import { expect, it } from "vitest";
import { StepTimeoutError, StopSequence, StopSequenceError } from "../src/index.ts";

const never = () => new Promise<void>(() => {});

it("runs its steps one after another in the order they were added", async () => {
  const seen: string[] = [];
  const stop = new StopSequence()
    .add("one", async () => {
      await Promise.resolve();
      seen.push("one");
    })
    .add("two", () => void seen.push("two"));
  expect(await stop.run()).toMatchObject({
    outcome: "clean",
    steps: [
      { name: "one", outcome: "done" },
      { name: "two", outcome: "done" },
    ],
  });
  expect(seen).toEqual(["one", "two"]);
});

it("passes by a step that hangs, tells it so, and goes on", async () => {
  let told: unknown;
  const stop = new StopSequence()
    .add(
      "hangs",
      (signal) => {
        signal.addEventListener("abort", () => {
          told = signal.reason;
        });
        return never();
      },
      { boundMs: 20 },
    )
    .add("after", () => {});
  const report = await stop.run();
  expect(report.outcome).toBe("timed out");
  expect(report.steps.map(({ name, outcome }) => [name, outcome])).toEqual([
    ["hangs", "timed out"],
    ["after", "done"],
  ]);
  expect(told).toBeInstanceOf(StepTimeoutError);
  expect(report.steps[0]?.error).toBe(told);
});

it.each([
  [
    "throws",
    () => {
      throw new TypeError("broken");
    },
  ],
  ["rejects", () => Promise.reject(new TypeError("broken"))],
])("passes by a step that %s", async (_, step) => {
  const report = await new StopSequence()
    .add("bad", step)
    .add("after", () => {})
    .run();
  expect(report.outcome).toBe("failed");
  expect(report.steps).toMatchObject([
    { name: "bad", outcome: "failed", error: { message: "broken" } },
    { name: "after", outcome: "done" },
  ]);
});

it("a step may say itself that time was too short", async () => {
  const report = await new StopSequence()
    .add("drain", () => Promise.reject(new StepTimeoutError("drain", 5)))
    .add("close", () => Promise.reject(new TypeError("broken")))
    .run();
  expect(report.outcome).toBe("timed out");
});

it("asks for a bound when the step begins", async () => {
  let leftMs = 60_000;
  const stop = new StopSequence()
    .add("uses the time", () => {
      leftMs = 0;
    })
    .add("has none left", never, { boundMs: () => leftMs });
  expect(await stop.run()).toMatchObject({ outcome: "timed out", steps: [{}, { outcome: "timed out" }] });
});

it("runs once, however often it is asked", async () => {
  let count = 0;
  const stop = new StopSequence().add("count", () => {
    count += 1;
  });
  expect(stop.started).toBe(false);
  const first = stop.run();
  expect(stop.run()).toBe(first);
  await first;
  expect(stop.started).toBe(true);
  expect(count).toBe(1);
});

it("takes no step once it has begun", async () => {
  const stop = new StopSequence();
  await stop.run();
  expect(() => stop.add("late", () => {})).toThrow(StopSequenceError);
});

it("tells of each step as it ends", async () => {
  const told: string[] = [];
  await new StopSequence(({ name, outcome }) => void told.push(`${name} ${outcome}`))
    .add("a", () => {})
    .run();
  expect(told).toEqual(["a done"]);
});
