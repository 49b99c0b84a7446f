import { cp } from "node:fs/promises";
import { defineConfig } from "tsup";

export default defineConfig({
  entry: { index: "src/index.ts" },
  format: "esm",
  target: "node22",
  dts: { compilerOptions: { composite: false, customConditions: [] } },
  clean: true,
  sourcemap: true,
  // The module that runs inside workerd stays a file of its own; src/worker-runtime.ts reads it.
  onSuccess: async () => {
    await cp("src/worker", "dist/worker", { recursive: true });
  },
});
