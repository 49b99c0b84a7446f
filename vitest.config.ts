import { randomInt } from "node:crypto";
import { defineConfig } from "vitest/config";

const conditions = ["@cellkit/source", "node"];
/** "long" runs the full numbers of every suite, "sample" what fits the budget in CONTRIBUTING.md. */
const size = process.env["CELLKIT_TEST"] === "long" ? "long" : "sample";
/** Printed at the start of a run; CELLKIT_SEED=N repeats that run's random choices. */
const seed = Number(process.env["CELLKIT_SEED"] ?? randomInt(1, 2 ** 31));

/** How long a test may take, in ms: enough for a machine that is busy with something else. Some take 40 s where nothing else runs. */
const testTimeout = size === "long" ? 900_000 : 180_000;

const shared = {
  resolve: { conditions },
  ssr: { resolve: { conditions } },
};

export default defineConfig({
  ...shared,
  test: {
    maxWorkers: 2,
    provide: { size, seed },
    testTimeout,
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
        // Real processes and kill -9, after all others. They mostly wait, and wait for conditions, so two files run at a time.
        ...shared,
        extends: true,
        test: {
          name: "process",
          include: [
            "packages/*/test/**/*.process.test.ts",
            "examples/*/test/**/*.process.test.ts",
            "tools/test/**/*.process.test.ts",
          ],
          exclude: ["**/node_modules/**"],
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
