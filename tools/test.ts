// `npm test [-- FILTER]`: vitest over the whole workspace, as a budgeted sample or with the full numbers. The full run is
// followed by the sample on the oldest and the newest Node; a filter leaves those out.
import { randomInt } from "node:crypto";
import { otherNodes } from "./other-nodes.ts";
import { run, runSteps } from "./processes.ts";

const [size = "sample", ...args] = process.argv.slice(2);
const seed = process.env["CELLKIT_SEED"] ?? String(randomInt(1, 2 ** 31));

function vitest(of: string, env: NodeJS.ProcessEnv): Promise<number> {
  console.log(`tests: ${of}, seed ${seed} (CELLKIT_SEED=${seed} repeats its random choices)`);
  return run("vitest", ["run", ...args], { env: { ...env, CELLKIT_TEST: of, CELLKIT_SEED: seed } });
}

if (size === "long" && args.length === 0) {
  const others = await otherNodes();
  await runSteps([
    [`Node ${process.versions.node}, full numbers`, () => vitest("long", process.env)],
    ...others.map(({ version, env }) => [`Node ${version}, sample`, () => vitest("sample", env)] as const),
  ]);
} else {
  process.exit(await vitest(size, process.env));
}
