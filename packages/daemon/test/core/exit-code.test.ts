import { expect, it } from "vitest";
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
