import fc from "fast-check";
import { expect, inject, test } from "vitest";
import { executionId, isExecutionId, isPortableExecutionId } from "../../src/index.ts";
import { vectors } from "../support/vectors.ts";

const runs = { seed: inject("seed"), numRuns: inject("size") === "long" ? 20_000 : 500 };

test.each(vectors.executionIds)("vector: $id", ({ id, routerAccepts, edgeAccepts }) => {
  expect(isExecutionId(id)).toBe(routerAccepts);
  expect(isPortableExecutionId(id)).toBe(routerAccepts && edgeAccepts);
});

test("parts that fit are joined as they are", () => {
  expect(executionId("report", "2026-11-30")).toBe("report-2026-11-30");
  expect(executionId("batch", "7", "x.y_z")).toBe("batch-7-x.y_z");
  expect(executionId("summary", "6f1e2d3c-0000-4000-8000-000000000001")).toBe(
    "summary-6f1e2d3c-0000-4000-8000-000000000001",
  );
});

test("parts that do not fit give a readable start and a digest that is always the same", () => {
  expect(executionId("team a:summary/1")).toMatch(/^team-a-summary-1-[0-9a-f]{32}$/);
  expect(executionId("team a:summary/1")).toBe(executionId("team a:summary/1"));
  expect(executionId("é")).toMatch(/^[0-9a-f]{32}$/);
  expect(executionId("x".repeat(200))).not.toBe(executionId("x".repeat(201)));
});

test.each<[string, [string, ...string[]], [string, ...string[]]]>([
  ["where a part has the separator", ["a-b", "c"], ["a", "b-c"]],
  ["where one part is what two are", ["a-b"], ["a", "b"]],
  ["where a part ends with the separator", ["a-", "b"], ["a", "-b"]],
  ["where a date is given in pieces", ["report", "2026-11-30"], ["report", "2026", "11", "30"]],
  [
    "where a UUID is given in pieces",
    ["a", "6f1e2d3c-0000-4000-8000-000000000001"],
    ["a", "6f1e2d3c", "0000-4000-8000-000000000001"],
  ],
])("different parts never have one id, %s", (_, some, others) => {
  expect(executionId(...some)).not.toBe(executionId(...others));
  expect(executionId(...some)).toBe(executionId(...some));
});

test("a part that is another id's digest does not lead to that id", () => {
  const shortened = executionId("a-b", "c");
  expect(shortened).toMatch(/^a-b-c-[0-9a-f]{32}$/);
  expect(executionId("a", "b", "c", shortened.slice(-32))).not.toBe(shortened);
  expect(executionId(shortened.slice(-32))).not.toBe(shortened.slice(-32));
});

test("parts of a few characters meet only when they are the same", () => {
  const part = fc.string({ minLength: 1, maxLength: 3, unit: fc.constantFrom("a", "-", ".") });
  const seen = new Map<string, string>();
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 4 }), ([first = "x", ...rest]) => {
      const id = executionId(first, ...rest);
      const parts = JSON.stringify([first, ...rest]);
      expect(seen.get(id) ?? parts).toBe(parts);
      seen.set(id, parts);
    }),
    runs,
  );
});

test("no part and an empty part are errors that say what to give", () => {
  expect(() => executionId("")).toThrow("has an empty part, number 1 of 1; give");
  expect(() => executionId("a", "")).toThrow("has an empty part, number 2 of 2; give");
  expect(() => executionId(...([] as unknown as [string]))).toThrow("needs at least one part; give a name");
  expect(() => executionId("")).not.toThrow("executionId()");
});

test("every id fits all limits, and different names with characters to replace do not meet", () => {
  const part = fc.string({ minLength: 1, maxLength: 200, unit: "grapheme" });
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 4 }), ([first = "x", ...rest]) => {
      const id = executionId(first, ...rest);
      expect(isPortableExecutionId(id)).toBe(true);
      expect(executionId(`${first}/`, ...rest)).not.toBe(executionId(`${first}:`, ...rest));
    }),
    runs,
  );
});
