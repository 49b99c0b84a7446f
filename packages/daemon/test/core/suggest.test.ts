import { expect, it } from "vitest";
import { editDistance, suggest } from "../../src/core/suggest.ts";

it.each([
  ["", "", 0],
  ["a", "", 1],
  ["", "ab", 2],
  ["bucket", "bucket", 0],
  ["bukcet", "bucket", 1],
  ["buckt", "bucket", 1],
  ["backet", "bucket", 1],
  ["listen", "region", 5],
])("%j is %j after %i changes", (a, b, distance) => {
  expect(editDistance(a, b)).toBe(distance);
  expect(editDistance(b, a)).toBe(distance);
});

it.each([
  ["--buckett", "--bucket"],
  ["--lisetn", "--listen"],
  ["--completely-else", undefined],
])("%s suggests %s", (word, expected) => {
  expect(suggest(word, ["--bucket", "--listen", "--region"])).toBe(expected);
});
