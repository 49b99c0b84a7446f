import { defineConfig } from "tsup";

export default defineConfig({
  entry: {
    index: "src/index.ts",
    msw: "src/msw/index.ts",
    "dispatcher-main": "src/process/dispatcher-main.ts",
  },
  format: "esm",
  target: "node22",
  dts: { compilerOptions: { composite: false, customConditions: [] } },
  clean: true,
  sourcemap: true,
});
