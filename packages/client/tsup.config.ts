import { defineConfig } from "tsup";

/** Must run before the imports of the file that imports it, so it is not made a part of that file. */
const first = "require-node";

export default defineConfig({
  entry: { index: "src/index.ts", worker: "src/worker.ts", [first]: `src/${first}.ts` },
  format: "esm",
  target: "node22",
  dts: {
    entry: { index: "src/index.ts", worker: "src/worker.ts" },
    compilerOptions: { composite: false, customConditions: [] },
  },
  clean: true,
  sourcemap: true,
  splitting: false,
  esbuildPlugins: [
    {
      name: "first",
      setup(build) {
        build.onResolve({ filter: new RegExp(`^\\./${first}\\.ts$`) }, () => ({
          path: `./${first}.js`,
          external: true,
          sideEffects: true,
        }));
      },
    },
  ],
});
