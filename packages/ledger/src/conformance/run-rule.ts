/** Holds a store against one rule, for so long as that may take. */
import { ConformanceError } from "../errors.ts";
import type { ConformanceCase, ConformanceFeatures, OpenLedger } from "./conformance-case.ts";
import { type Rule, Scene } from "./scene.ts";

/** A case that can be run. */
export function bindRule(
  rule: Rule,
  openLedger: OpenLedger,
  place: string,
  features: ConformanceFeatures & { timeoutMs: number },
): ConformanceCase {
  return {
    name: rule.name,
    run: async () => {
      const scene = await Scene.begin(openLedger, place, features);
      await withinTime(play(rule, scene), scene, features.timeoutMs);
    },
  };
}

/** A case that is there to be seen only. */
export function skipRule({ name }: Rule, skip: string): ConformanceCase {
  const refuse = () => Promise.reject(new ConformanceError(`this case cannot be run: ${skip}`));
  return { name, skip, run: refuse };
}

async function play(rule: Rule, scene: Scene): Promise<void> {
  try {
    await rule.run(scene);
  } catch (error) {
    // What broke the rule says more than what its ledgers say at their end.
    await scene.end().catch(() => {});
    throw error;
  }
  await scene.end();
}

async function withinTime(playing: Promise<void>, scene: Scene, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const names = scene.running.names().join(", ") || "nothing of the ledger";
      reject(new ConformanceError(`not ended after ${timeoutMs} ms; still running: ${names}`));
      // Nobody waits for what hangs, but what can be freed is.
      scene.end().catch(() => {});
    }, timeoutMs);
  });
  try {
    await Promise.race([playing, late]);
  } finally {
    clearTimeout(timer);
  }
}
