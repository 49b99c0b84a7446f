// The graceful end of a workerd: it hands its cells to its peers, leaves the cluster, and is then ended, since it would
// otherwise go on accepting for the rest of its five seconds with nothing to do.
import type { Bucket } from "@cellkit/bucket";
import type { Launched } from "./launch.ts";
import { readLease } from "./lease.ts";
import { pause } from "./pause.ts";

const leasePollMs = 25;
/** After the lease is gone, calls of peers that waited here are still being sent back, to be sent on. */
const lastWordsMs = 1000;

/** How a hand-over goes. */
export interface HandOverOptions {
  readonly bucket: Bucket;
  /** After so many milliseconds the process is ended whatever it does. */
  readonly deadlineMs: number;
  /** True when nothing that came through this node is in flight. */
  readonly idle: () => boolean;
}

/** Hands everything over and ends the process. Answers false when the time ran out or the process died on the way. */
export async function handOver(launched: Launched, options: HandOverOptions): Promise<boolean> {
  const deadline = AbortSignal.timeout(options.deadlineMs);
  let reaped = false;
  void launched.exited.then(() => {
    reaped = true;
  });
  launched.child.kill("SIGTERM");
  const key = await launched.leaseKey().catch(() => undefined);
  let leftMs: number | undefined;
  while (!reaped && !deadline.aborted) {
    if (leftMs === undefined && (await hasLeft(options.bucket, key, deadline))) leftMs = performance.now();
    const handedOver = leftMs !== undefined && performance.now() - leftMs >= lastWordsMs && options.idle();
    if (handedOver) break;
    await Promise.race([launched.exited, pause(leasePollMs)]);
  }
  if (reaped) return (await launched.exited).code === 0;
  launched.child.kill("SIGKILL");
  await launched.exited;
  return leftMs !== undefined && options.idle();
}

async function hasLeft(bucket: Bucket, key: string | undefined, signal: AbortSignal): Promise<boolean> {
  if (key === undefined) return false;
  try {
    return (await readLease(bucket, key, signal)) === undefined;
  } catch {
    // A bucket that does not answer proves nothing; workerd's own time to stop bounds this.
    return false;
  }
}
