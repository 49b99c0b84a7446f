import { expect, onTestFinished, test } from "vitest";
import { until } from "../../../tools/test-support/until.ts";
import { TurnEnd } from "../src/turn-end.ts";

test("the first step is taken for all that asked before the second one is for any, in their order", async () => {
  const steps: string[] = [];
  const turns = new TurnEnd<string>(
    (one) => void steps.push(`prepare ${one}`),
    (one) => void steps.push(`finish ${one}`),
  );
  turns.add("a");
  turns.add("b");
  expect(steps).toEqual([]);
  await until("second step of both", () => steps.includes("finish b"));
  expect(steps).toEqual(["prepare a", "prepare b", "finish a", "finish b"]);
});

test("one that asks while a turn ends has the next one", async () => {
  const steps: string[] = [];
  const turns = new TurnEnd<string>(
    (one) => void steps.push(`prepare ${one}`),
    (one) => {
      steps.push(`finish ${one}`);
      if (one === "a") turns.add("c");
    },
  );
  turns.add("a");
  turns.add("b");
  await until("second step of the third", () => steps.includes("finish c"));
  expect(steps).toEqual(["prepare a", "prepare b", "finish a", "finish b", "prepare c", "finish c"]);
});

test("one that throws holds up nobody behind it", async () => {
  const thrown: unknown[] = [];
  const others = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", (error) => void thrown.push(error));
  onTestFinished(() => {
    process.removeAllListeners("uncaughtException");
    for (const other of others) process.on("uncaughtException", other);
  });
  const finished: string[] = [];
  const failure = new RangeError("of b's reader");
  const turns = new TurnEnd<string>(
    () => undefined,
    (one) => {
      finished.push(one);
      if (one === "b") throw failure;
    },
  );
  for (const one of ["a", "b", "c", "d"]) turns.add(one);
  await until("end of the last", () => finished.includes("d"));
  expect(finished).toEqual(["a", "b", "c", "d"]);
  expect(thrown).toEqual([failure]);
});
