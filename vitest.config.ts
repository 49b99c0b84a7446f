import { randomInt } from "node:crypto";
import { defineConfig } from "vitest/config";

const conditions = ["@cellkit/source", "node"];
/** "long" runs the full numbers of every suite, "sample" what fits the budget in CONTRIBUTING.md. */
const size = process.env["CELLKIT_TEST"] === "long" ? "long" : "sample";
/** Printed at the start of a run; CELLKIT_SEED=N repeats that run's random choices. */
const seed = Number(process.env["CELLKIT_SEED"] ?? randomInt(1, 2 ** 31));

const shared = {
  resolve: { conditions },
  ssr: { resolve: { conditions } },
};

export default defineConfig({
  ...shared,
  test: {
    maxWorkers: 2,
    provide: { size, seed },
    testTimeout: size === "long" ? 900_000 : 60_000,
    hookTimeout: 120_000,
    reporters: ["default", "./tools/closing-line-reporter.ts"],
    projects: [
      {
        ...shared,
        extends: true,
        test: {
          name: "unit",
          include: [
            "packages/*/test/**/*.test.ts",
            "examples/*/test/**/*.test.ts",
            "tools/test/**/*.test.ts",
          ],
          exclude: ["**/*.process.test.ts", "**/node_modules/**"],
          sequence: { groupOrder: 0 },
        },
      },
      {
        // Programs that are killed at every point and judged afterwards: nothing in them is a matter of time, so two files run at a time.
        ...shared,
        extends: true,
        test: {
          name: "crash",
          include: ["packages/ledger/test/**/*.process.test.ts"],
          sequence: { groupOrder: 1 },
        },
      },
      {
        // Real processes and kill -9: one file at a time, so that a loaded machine does not distort them.
        ...shared,
        extends: true,
        test: {
          name: "process",
          include: [
            "packages/*/test/**/*.process.test.ts",
            "examples/*/test/**/*.process.test.ts",
            "tools/test/**/*.process.test.ts",
          ],
          exclude: ["packages/ledger/**", "**/node_modules/**"],
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
