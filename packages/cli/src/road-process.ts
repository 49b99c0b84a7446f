// The relay of a local fleet: `cellkit road`, a process of its own, so that no node that ends cuts what it carried for others.
import { DaemonProcess } from "@cellkit/daemon";
import { type BucketProcess, cellkitCommand } from "./bucket-process.ts";
import { ProcessStartError } from "./errors.ts";
import { reasonOf } from "./node-log.ts";

const startBoundMs = 30_000;
const stopBoundMs = 10_000;

/** A relay that runs. */
export interface RoadProcess {
  readonly process: DaemonProcess;
  /** The fleet's road port. */
  readonly port: number;
  /** SIGTERM, and SIGKILL after 10 s. */
  stop(): Promise<void>;
}

/**
 * Starts a relay on a free port.
 * @throws ProcessStartError (`CELLKIT_CLI_PROCESS_START`); the process is gone then
 */
export async function startRoadProcess(
  bucket: BucketProcess,
  env: NodeJS.ProcessEnv,
  onLog: (line: string) => void,
): Promise<RoadProcess> {
  const { command, args } = cellkitCommand();
  let port = 0;
  // Until then its lines are for the reason of a start that failed.
  let started = false;
  const child = new DaemonProcess("cellkit road", {
    command,
    args: [
      ...[...args, "road", "--port", "0", "--bucket", bucket.url],
      ...["--endpoint", bucket.endpoint, "--region", bucket.region],
    ],
    // Of whoever starts the fleet, no profile or token may come before the bucket's own keys.
    env: {
      ...Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("AWS_"))),
      ...bucket.environment,
    },
    onLine: (line, stream) => {
      if (stream === "stderr") {
        if (started) onLog(line);
      } else port ||= Number(/^export CELLD_ROAD_PORT=(\d+)$/.exec(line)?.[1] ?? 0);
    },
  });
  try {
    await child.until("listening", async () => port !== 0, startBoundMs);
  } catch (cause) {
    await child.kill();
    throw new ProcessStartError("road", reasonOf(child.lastLines), { cause });
  }
  started = true;
  return { process: child, port, stop: async () => void (await child.stop(stopBoundMs)) };
}
