// The relay of a local fleet: `cellkit road`, a process of its own, so that no node that ends cuts what it carried for others.
import type { BucketProcess } from "./bucket-process.ts";
import { type SiblingProcess, startSibling } from "./sibling-process.ts";

/** A relay that runs. */
export interface RoadProcess extends Pick<SiblingProcess, "process" | "stop"> {
  /** The fleet's road port. */
  readonly port: number;
}

/**
 * Starts a relay on a free port.
 * @param onLog hears what it says about its work, not what it prints while it starts
 * @throws ProcessStartError (`CELLKIT_CLI_PROCESS_START`); the process is gone then
 */
export async function startRoadProcess(
  bucket: BucketProcess,
  env: NodeJS.ProcessEnv,
  onLog: (line: string) => void,
): Promise<RoadProcess> {
  const { process, value, stop } = await startSibling({
    command: ["road"],
    args: [
      ...["--port", "0", "--bucket", bucket.url],
      ...["--endpoint", bucket.endpoint, "--region", bucket.region],
    ],
    // Of whoever starts the fleet, no profile or token may come before the bucket's own keys.
    env: {
      ...Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("AWS_"))),
      ...bucket.environment,
    },
    variable: "CELLD_ROAD_PORT",
    onLog,
  });
  return { process, port: Number(value), stop };
}
