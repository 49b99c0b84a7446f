import { expect, it } from "vitest";
import { CapacityWatch } from "../src/capacity-watch.ts";

function told(capacity: number, counts: readonly number[]): string[] {
  const heard: string[] = [];
  const watch = new CapacityWatch(capacity, (ratio, count) => heard.push(`${ratio} at ${count}`));
  for (const count of counts) watch.see(count);
  return heard;
}

it.each([
  ["each share once", [0, 79, 80, 85, 89, 90, 94, 95, 99, 100], ["0.8 at 80", "0.9 at 90", "0.95 at 95"]],
  ["only the highest of a jump", [10, 97, 98], ["0.95 at 97"]],
  ["again where the count fell below it meanwhile", [81, 70, 82], ["0.8 at 81", "0.8 at 82"]],
  ["nothing below all of them", [0, 50, 79], []],
])("it tells %s", (_, counts, expected) => {
  expect(told(100, counts)).toEqual(expected);
});
