// `npm test [-- FILTER]`: vitest over the whole workspace, as a budgeted sample or with the full numbers.
import { randomInt } from "node:crypto";
import { run } from "./processes.ts";

const [size = "sample", ...args] = process.argv.slice(2);
const seed = process.env["CELLKIT_SEED"] ?? String(randomInt(1, 2 ** 31));
console.log(`tests: ${size}, seed ${seed} (CELLKIT_SEED=${seed} repeats its random choices)`);
process.exit(
  await run("vitest", ["run", ...args], { env: { ...process.env, CELLKIT_TEST: size, CELLKIT_SEED: seed } }),
);
