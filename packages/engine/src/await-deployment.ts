// A node that starts before anything is deployed waits for the first deployment.
import { BucketError } from "@cellkit/bucket";
import { type Deployment, readCurrent, readDeployment } from "@cellkit/deployment";
import type { ResolvedOptions } from "./engine-options.ts";
import { pause } from "./pause.ts";

/** What to do with a deployment. */
export interface DeploymentWait {
  adopt(deployment: Deployment): Promise<void>;
  /** A deployment could not be adopted, by its own fault. */
  refused(): void;
  readonly signal: AbortSignal;
}

/** Polls until there is a deployment, and adopts it; when it cannot be used, another one is waited for. */
export async function awaitDeployment(
  { bucket, log, deploymentPollMs }: Pick<ResolvedOptions, "bucket" | "log" | "deploymentPollMs">,
  { adopt, refused, signal }: DeploymentWait,
): Promise<void> {
  let refusedVersion: string | undefined;
  while (!signal.aborted) {
    await pause(deploymentPollMs * (0.75 + Math.random() / 2), signal);
    let version: string | undefined;
    try {
      version = (await readCurrent(bucket, { signal }))?.version;
      if (version === undefined || version === refusedVersion) continue;
      const deployment = await readDeployment(bucket, undefined, { signal });
      if (deployment === undefined) continue;
      await adopt(deployment);
      return;
    } catch (error) {
      if (signal.aborted) return;
      // The bucket may answer the next time; anything else is the deployment's own fault, and told once.
      const itsFault = !(error instanceof BucketError);
      if (itsFault) {
        refused();
        refusedVersion = version;
      }
      log[itsFault ? "error" : "warn"]({ error, version }, "the deployment could not be started");
    }
  }
}
