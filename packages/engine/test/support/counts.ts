// What an engine counts.

import { until } from "../../../../tools/test-support/until.ts";
import type { EngineSnapshot, NodeEngine } from "../../src/index.ts";

/** An engine's snapshot with what its workerd counts: one without that, of a workerd that took more than a second, is asked for again. */
export function counted(engine: NodeEngine): Promise<EngineSnapshot & { readonly occupied: number }> {
  return until("workerd tells its counts", async () => {
    const snapshot = await engine.snapshot();
    return snapshot.occupied === undefined ? undefined : { ...snapshot, occupied: snapshot.occupied };
  });
}
