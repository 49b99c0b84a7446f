// How long something takes on a machine that does other things, too.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

const tickMs = 10;

/**
 * Runs something. `ownMs` is how long it took, less what the machine itself took in the same moment: how late timers of this
 * process were in the sum, and how long a bare process needed to start and end.
 */
export async function timed<T>(run: () => Promise<T>): Promise<{ value: T; ownMs: number }> {
  const beganMs = performance.now();
  let lateMs = 0;
  let isOver = false;
  const ticking = (async () => {
    while (!isOver) {
      const fromMs = performance.now();
      await sleep(tickMs);
      lateMs += performance.now() - fromMs - tickMs;
    }
  })();
  const bare = (async () => {
    await once(spawn(process.execPath, ["--eval", ""], { stdio: "ignore" }), "exit");
    return performance.now() - beganMs;
  })();
  try {
    const value = await run();
    const tookMs = performance.now() - beganMs;
    return { value, ownMs: tookMs - lateMs - (await bare) };
  } finally {
    isOver = true;
    await Promise.all([ticking, bare]);
  }
}
