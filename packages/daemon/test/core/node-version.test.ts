import { expect, it } from "vitest";
import { nodeVersionProblem } from "../../src/core/node-version.ts";

it.each(["22.19.0", "22.20.1", "24.21.0", "26.10.0"])("Node %s is new enough", (version) => {
  expect(nodeVersionProblem("toy", version)).toBeUndefined();
});

it.each(["22.18.9", "20.20.2", "18.0.0", "nonsense"])("Node %s is told from one that will do", (version) => {
  expect(nodeVersionProblem("toy", version)).toBe(
    `toy: needs Node 22.19 or later, and this is ${version}; install a newer one`,
  );
});
