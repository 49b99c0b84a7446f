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

test("no part and an empty part are errors", () => {
  expect(() => executionId("")).toThrow("has an empty part");
  expect(() => executionId(...([] as unknown as [string]))).toThrow("at least one part");
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
