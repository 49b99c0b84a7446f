import { expect, it } from "vitest";
import { exitCodeOfStop } from "../../src/core/exit-code.ts";
import { ConfigError, exitCodeMeanings, exitCodeOf, exitCodes } from "../../src/index.ts";

it("every exit code has a meaning for people", () => {
  expect(Object.keys(exitCodeMeanings).map(Number)).toEqual(Object.values(exitCodes));
});

it.each([
  ["an error that asks for a code", { exitCode: 3 }, 3],
  ["a configuration error", new ConfigError("toy", [{ where: "--a", message: "is bad" }]), 2],
  ["any other error", new TypeError("x"), 1],
  ["a code of a signal", { exitCode: 130 }, 1],
  ["a code that would mean success", { exitCode: 0 }, 1],
  ["a code that is no number", { exitCode: "2" }, 1],
  ["no error at all", undefined, 1],
])("%s ends with the right code", (_, error, code) => {
  expect(exitCodeOf(error)).toBe(code);
});

const done = { outcome: "done" } as const;
const late = { outcome: "timed out", error: new TypeError("late") } as const;
const failed = (exitCode?: number) => ({ outcome: "failed" as const, error: { exitCode } });

it.each([
  ["no step", [], 0],
  ["steps that are all done", [done, done], 0],
  ["a failed step", [done, failed()], 1],
  ["a step that ran out of time", [late, done], 4],
  ["one after a failed one", [failed(), late], 4],
  ["a failed step that says that time ran out", [failed(), failed(4)], 4],
  ["a failed step with a code of its own", [failed(3), failed()], 3],
])("a stop with %s ends with the right code", (_, steps, code) => {
  expect(exitCodeOfStop(steps)).toBe(code);
});
