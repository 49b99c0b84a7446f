import { expect, it } from "vitest";
import { nodeLabel } from "../src/router-metrics.ts";

it("a node's name in a metric is cut, and has printable ASCII alone", () => {
  expect(nodeLabel("node-1 of rack B")).toBe("node-1 of rack B");
  expect(nodeLabel("a\n\u0000\u00e9\u202eb")).toBe("a????b");
  expect(nodeLabel("x".repeat(65_000))).toBe("x".repeat(64));
});
